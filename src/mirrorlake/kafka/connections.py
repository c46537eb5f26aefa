"""A topology's clusters, connected: admin clients, identities, settings. Secrets go no further."""

from collections.abc import Collection, Iterable, Mapping

from mirrorlake.config.topology import Topology
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.config import librdkafka_config
from mirrorlake.kafka.groups import GroupAdmin
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.kafka.secrets import resolved
from mirrorlake.kafka.transactions import OpenTransaction, open_transactions
from mirrorlake.offsets.positions import TopicAndPartition


class Connections:
    """Connects lazily, cluster by cluster; results hold secrets and are never logged.

    `admins` are admin clients by alias that exist already, such as those of `mirrorlake.testing`.
    """

    def __init__(
        self, topology: Topology, admins: Mapping[str, ClusterAdmin] | None = None
    ) -> None:
        self.topology = topology
        self._admins: dict[str, ClusterAdmin] = dict(admins or {})
        self._groups: dict[str, GroupAdmin] = {}
        self._ids: dict[str, str] = {}

    def admin(self, alias: str) -> ClusterAdmin:
        """The admin client of a cluster."""
        if alias not in self._admins:
            self._admins[alias] = ClusterAdmin(alias, self.live(alias, "admin"))
        return self._admins[alias]

    def groups(self, alias: str) -> GroupAdmin:
        """The consumer groups of a cluster."""
        if alias not in self._groups:
            self._groups[alias] = GroupAdmin(self.admin(alias), self.live(alias, "admin"))
        return self._groups[alias]

    def client(self, alias: str, role: str) -> dict[str, str | int | bool]:
        """librdkafka settings for a role: admin, consumer or producer."""
        cluster = self.topology.clusters[alias]
        return librdkafka_config(alias, cluster, role, self.resolve)  # type: ignore[arg-type]

    def live(self, alias: str, role: str) -> LiveSettings[str | int | bool]:
        """The same for a long-lived client: secrets may be rotated meanwhile."""
        return LiveSettings(lambda: self.client(alias, role))

    def open_transactions(
        self, alias: str, wanted: Collection[TopicAndPartition]
    ) -> dict[TopicAndPartition, OpenTransaction]:
        """The oldest open transaction of each of some partitions of a cluster, as far as its
        brokers can be asked. Raises ClusterUnreachable."""
        if not wanted:
            return {}
        return open_transactions(self.admin(alias), self.client(alias, "admin"), wanted)

    def resolve(self, text: str) -> str:
        """A text with the values of its references; never to be logged. Raises TopologyError."""
        return resolved(text)

    def identify(self, aliases: Iterable[str]) -> dict[str, str]:
        """Ids of the named clusters and of those queried before, by alias.

        Raises:
            ClusterUnreachable: no broker of a cluster answers.
            AuthenticationFailed: a cluster refuses us.
        """
        for alias in aliases:
            if alias not in self._ids:
                self._ids[alias] = self.admin(alias).cluster_id()
        return dict(self._ids)

    def renewed(self, topology: Topology) -> "Connections":
        """Connections for an edited topology; clients of clusters that are the same are kept."""
        fresh = Connections(topology)
        for alias, cluster in topology.clusters.items():
            if cluster == self.topology.clusters.get(alias):
                fresh._admins.update({alias: self._admins[alias]} if alias in self._admins else {})
                fresh._groups.update({alias: self._groups[alias]} if alias in self._groups else {})
                fresh._ids.update({alias: self._ids[alias]} if alias in self._ids else {})
        return fresh
