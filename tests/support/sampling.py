"""A sampler over two clusters in memory."""

from typing import Any

from mirrorlake.config.topology import Topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.naming.policy import HEARTBEATS
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.run.samples import Sampler
from mirrorlake.run.snapshot import Snapshot
from mirrorlake.testing import MemoryCluster, MemoryLake

Rows = list[dict[str, Any]]


class FakeTargets:
    """Every topic that is selected is produced, under the source's alias."""

    def __init__(self, topology: Topology) -> None:
        self.selection = topology.flow("east->west").selection

    def remote_topic(self, topic: str) -> str:
        return f"east.{topic}"

    produced_topic = remote_topic


class Setting:
    """A sampler of a flow over two fake clusters."""

    def __init__(
        self,
        source: MemoryCluster,
        target: MemoryCluster,
        lake: Lake,
        path: str = "lake",
        once: bool = False,
    ) -> None:
        clusters = {"east": {"bootstrap_servers": "a:1"}, "west": {"bootstrap_servers": "b:1"}}
        document = {
            "clusters": clusters,
            "lake": {"path": path},
            "flows": {"east->west": {"topics": ["orders"]}},
        }
        topology = Topology.model_validate(document)
        self.lake = lake
        connections = Connections(topology, {"east": source, "west": target})
        flow, targets = topology.flow("east->west"), FakeTargets(topology)
        deployment = Deployment(lake, connections, EventLog(lake))
        self.sampler = Sampler(
            flow,
            deployment,
            targets,  # type: ignore[arg-type]
            is_heartbeats=HEARTBEATS.__eq__,
            once=once,
        )

    def sample(self, floors: dict[TopicAndPartition, int], caught_up: bool = False) -> Rows:
        """The rows that a sample appends to a lake in memory."""
        assert isinstance(self.lake, MemoryLake)
        before = len(self.lake.appended.get("positions", ()))
        self.take(floors, caught_up)
        return self.lake.appended.get("positions", [])[before:]

    def take(self, floors: dict[TopicAndPartition, int], caught_up: bool = False) -> None:
        """Take a sample of a flow that is there."""
        snapshot = Snapshot(
            covered=dict(floors),
            caught_up=caught_up,
            floors=dict(floors),
            mapped=dict(floors),
            blocked=frozenset(),
            left_out=frozenset(),
        )
        lag = self.sampler.sample(lambda: snapshot)
        assert lag is not None
        self.lag = lag
