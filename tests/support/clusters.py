"""The two Kafka clusters that integration tests run against."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters

#: Brokers look every five minutes for segments older than seven days: the records of a test that
#: gives them old timestamps must not go while it runs. And a controller writes a record each half
#: second where nothing happens, which is a fifth of what an idle cluster costs.
SETTINGS = {"log.retention.check.interval.ms": "86400000", "metadata.max.idle.interval.ms": "0"}


@dataclass(frozen=True)
class ClusterPair:
    """Bootstrap addresses of two clusters; `embedded` is None when they are not ours to kill."""

    east: str
    west: str
    embedded: dict[str, EmbeddedCluster] | None


def given_clusters() -> ClusterPair | None:
    """The clusters that the environment names, if it does."""
    east = os.environ.get("MIRRORLAKE_TEST_BOOTSTRAP_A")
    west = os.environ.get("MIRRORLAKE_TEST_BOOTSTRAP_B")
    return ClusterPair(east, west, None) if east and west else None


@contextmanager
def cluster_pair(directory: Path) -> Iterator[ClusterPair]:
    """Give the clusters that the environment names, else start two for the time of the block."""
    given = given_clusters()
    if given is not None:
        yield given
        return
    embedded = start_clusters(["east", "west"], directory, properties=SETTINGS)
    try:
        yield ClusterPair(
            embedded["east"].bootstrap_servers, embedded["west"].bootstrap_servers, embedded
        )
    finally:
        stop_clusters(embedded)


#: What the names of MirrorMaker 2's own topics end with: every flow shares them.
FIXED_NAMES = ("heartbeats", "checkpoints.internal", "checkpoints_internal")


@contextmanager
def own_topics(clusters: ClusterPair) -> Iterator[None]:
    """Delete, behind the block, the topics that were made in it; and before it, those of
    MirrorMaker 2 that other tests left, unless the clusters are somebody's own."""
    admins = [
        AdminClient({"bootstrap.servers": address}) for address in (clusters.east, clusters.west)
    ]
    if clusters.embedded is not None:
        for admin in admins:
            _delete(admin, {name for name in _topics(admin) if name.endswith(FIXED_NAMES)})
    before = [_topics(admin) for admin in admins]
    try:
        yield
    finally:
        for admin, known in zip(admins, before, strict=True):
            _delete(admin, {name for name in _topics(admin) - known if name[:2] != "__"})


def _topics(admin: AdminClient) -> set[str]:
    return set(admin.list_topics(timeout=20).topics)


def _delete(admin: AdminClient, names: set[str]) -> None:
    for future in admin.delete_topics(sorted(names)).values() if names else ():
        future.result(20)
    while names & _topics(admin):
        time.sleep(0.05)
