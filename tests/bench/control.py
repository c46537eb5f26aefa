"""How long control takes for many unchanged topics: its cost at every refresh interval."""

import statistics
from collections.abc import Callable, Mapping
from functools import partial

from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.control.config_sync import ConfigSync
from mirrorlake.control.topic_comparison import observe_topics
from mirrorlake.devtools.bench.measure import seconds_of
from mirrorlake.devtools.bench.scale import wait_until_listed
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.changes import MemoryLog
from tests.support.many_topics import PARTITIONS, create_many

ROUNDS = 5
PREFIX = "bench-control-"


def measure_control(east: str, west: str) -> dict[str, float]:
    """Create 300 topics with 1,000 partitions on `east` and their mirrors on `west`, and time
    control: {"topics", "partitions", "create_seconds", "refresh_topics_seconds",
    "refresh_configs_seconds"}; the first is for all mirrors with their configs, the others are
    medians when nothing changed."""
    topology = topology_of({"east": east, "west": west}, topics=[f"{PREFIX}.*"])
    (flow,) = topology.active_flows()
    connections = Connections(topology)
    source, target = connections.admin("east"), connections.admin("west")
    names = {topic.name: f"east.{topic.name}" for topic in create_many(source, PREFIX)}
    configs = ConfigSync(flow, connections, MemoryLog(), names.get)
    made_names: set[str] = set(names.values())

    def create() -> None:
        plans = observe_topics(flow, connections, None)
        # includes heartbeats, if there are any
        made_names.update(plan.target_topic for plan in plans)
        given = configs.creation({plan.topic: plan.factor for plan in plans})
        target.create_topics(
            [
                TopicInfo(plan.target_topic, plan.partitions, plan.factor, given[plan.topic])
                for plan in plans
            ]
        )

    def median(work: Callable[[], object]) -> float:
        return statistics.median(seconds_of(work) for _ in range(ROUNDS))

    made = seconds_of(create)
    wait_until_listed(target, made_names)
    refresh = median(partial(_nothing_to_do, flow, connections))
    return {
        "topics": len(names),
        "partitions": PARTITIONS,
        "create_seconds": made,
        "refresh_topics_seconds": refresh,
        "refresh_configs_seconds": median(configs.plan),
    }


def topology_of(addresses: Mapping[str, str], **flow: object) -> Topology:
    """A topology: a flow from the first cluster to the second, settings, and a lake in a folder."""
    clusters = {alias: {"bootstrap_servers": servers} for alias, servers in addresses.items()}
    flows = {"->".join(addresses): flow}
    return Topology.model_validate(
        {"clusters": clusters, "lake": {"path": "./lake"}, "flows": flows}
    )


def _nothing_to_do(flow: ResolvedFlow, connections: Connections) -> None:
    left = [plan for plan in observe_topics(flow, connections, None) if plan.action != "none"]
    if left:
        raise RuntimeError(f"the mirrors are not all made: {left[:3]}")
