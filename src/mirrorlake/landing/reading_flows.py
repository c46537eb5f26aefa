"""The flows that read from one source cluster, and how they decide the way it is landed."""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mirrorlake.config.cluster import Cluster, Landing
from mirrorlake.config.idle import IdlePace
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.objectives import known_heartbeats
from mirrorlake.lake.starts import starts_from
from mirrorlake.landing.source_comparison import CurrentGenerations
from mirrorlake.naming.selection import TopicSelection
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.starts import landing_begins


class Reading(NamedTuple):
    """How a cluster is read, as of one version of the topology file: the settings of its consumer,
    of its landing, and how long heartbeats wait for other records, seconds."""

    client: LiveSettings[str | int | bool]
    landing: Landing
    heartbeats_wait: float


class ReadingFlows:
    """The flows from a cluster `alias` by the topology file; one thread edits them, others ask."""

    def __init__(self, alias: str, deployment: Deployment) -> None:
        self.alias = alias
        self._lake = deployment.lake
        self._use = threading.RLock()
        self._flows: list[ResolvedFlow] = []
        self._connections = deployment.connections

    def set(self, flows: Sequence[ResolvedFlow], connections: Connections) -> bool:
        """Set the flows; returns whether that changes what is read, or how."""
        with self._use:
            before = self._query_inputs() if self._flows else None
            self._flows, self._connections = list(flows), connections
            return before != self._query_inputs()

    def _query_inputs(self) -> object:
        return [selection.java_pattern() for selection in self.selections()], self._cluster()

    def _cluster(self) -> Cluster:
        return self._connections.topology.clusters[self.alias]

    @property
    def connections(self) -> Connections:
        """The connections to the clusters, as the file has them."""
        return self._connections

    @property
    def pace(self) -> IdlePace:
        """How often to do what costs something in the lake."""
        return self._connections.topology.lake.pace

    @property
    def keep_configs(self) -> bool:
        """Whether any of the flows keeps topic configs alike."""
        with self._use:
            return any(flow.settings.sync_topic_configs_enabled for flow in self._flows)

    def named(self) -> list[tuple[str, TopicSelection]]:
        """The flows' names, each with its selection."""
        with self._use:
            return [(flow.name, flow.selection) for flow in self._flows]

    def names(self) -> list[str]:
        """The flows' names."""
        return [name for name, _ in self.named()]

    def selections(self) -> list[TopicSelection]:
        """The flows' selections."""
        return [selection for _, selection in self.named()]

    def reading(self) -> Reading:
        """How the cluster is read for these flows."""
        with self._use:
            return Reading(
                self._connections.live(self.alias, "consumer"),
                self._cluster().landing,
                self._connections.topology.heartbeats_wait(self.names()),
            )

    def known_heartbeats(self) -> Callable[[str], bool]:
        """The topics that hold heartbeats, as far as a flow has noted them."""
        known = [known_heartbeats(self._lake, name) for name in self.names()]
        return lambda topic: any(one(topic) for one in known)

    def begins(self, current: CurrentGenerations) -> dict[TopicAndPartition, int]:
        """The first offsets of partitions without staged records, as the flows have noted them."""
        selects = {name: selection.selects for name, selection in self.named()}
        return landing_begins(starts_from(self._lake.now, self.alias), selects, current.generation)
