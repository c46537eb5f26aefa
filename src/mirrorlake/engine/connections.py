"""The clusters of a topology, connected: admin clients, identities, rendered client settings. Secrets end here."""

import os
from collections.abc import Iterable
from functools import cached_property

from mirrorlake.core.references import env_provider, resolve
from mirrorlake.core.topology import ResolvedFlow, Topology
from mirrorlake.errors import TopologyError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.config import librdkafka_config, spark_options


class Connections:
    """Connects lazily, cluster by cluster; what it returns holds secrets and is never logged."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._admins: dict[str, ClusterAdmin] = {}
        self._ids: dict[str, str] = {}

    @cached_property
    def shaded(self) -> bool:
        """Whether the JVM's Kafka client is the shaded one of a Databricks runtime."""
        return "DATABRICKS_RUNTIME_VERSION" in os.environ

    def admin(self, alias: str) -> ClusterAdmin:
        """The admin client of a cluster."""
        if alias not in self._admins:
            self._admins[alias] = ClusterAdmin(alias, self.client(alias, "admin"))
        return self._admins[alias]

    def client(self, alias: str, role: str) -> dict[str, str | int | bool]:
        """librdkafka settings for a role: admin, consumer or producer."""
        cluster = self.topology.clusters[alias]
        return librdkafka_config(alias, cluster, role, self._resolve)  # type: ignore[arg-type]

    def spark(self, alias: str) -> dict[str, str]:
        """Options of Spark's Kafka source."""
        return spark_options(alias, self.topology.clusters[alias], self._resolve, self.shaded)

    def _resolve(self, text: str) -> str:
        return resolve(text, {"env": env_provider(os.environ)})

    def identify(self, aliases: Iterable[str]) -> dict[str, str]:
        """Cluster ids by alias. Raises ClusterUnreachable or AuthenticationFailed."""
        for alias in aliases:
            if alias not in self._ids:
                self._ids[alias] = self.admin(alias).cluster_id()
        return dict(self._ids)

    def check(self, flows: Iterable[ResolvedFlow]) -> None:
        """Refuse flows that would mirror a cluster onto itself, by cluster id, whatever it is called.

        Raises TopologyError.
        """
        chosen = list(flows)
        ids = self.identify(sorted({alias for flow in chosen for alias in (flow.source, flow.target)}))
        for flow in chosen:
            if ids[flow.source] == ids[flow.target]:
                raise TopologyError(
                    f"flow {flow.name} would mirror a cluster onto itself: {flow.source} and {flow.target} are both "
                    f"cluster {ids[flow.source]}; give one of them another bootstrap_servers",
                    flow=flow.name,
                )
        by_id: dict[str, str] = {}
        for alias in sorted({alias for flow in chosen for alias in (flow.source, flow.target)}):
            other = by_id.setdefault(ids[alias], alias)
            if other != alias:
                raise TopologyError(
                    f"clusters {other} and {alias} are the same cluster {ids[alias]} under two aliases; records would "
                    "go round in circles, so use one alias",
                    cluster_id=ids[alias],
                )
