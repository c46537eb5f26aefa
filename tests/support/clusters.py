"""The two Kafka clusters that integration tests run against."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient

from mirrorlake.local.cluster import EmbeddedCluster, start_clusters, stop_clusters


@dataclass(frozen=True)
class ClusterPair:
    """Bootstrap addresses of two clusters; `embedded` is None when they are not ours to kill."""

    east: str
    west: str
    embedded: dict[str, EmbeddedCluster] | None


@contextmanager
def cluster_pair(directory: Path) -> Iterator[ClusterPair]:
    """Give the clusters that the environment names, else start two for the time of the block."""
    east = os.environ.get("MIRRORLAKE_TEST_BOOTSTRAP_A")
    west = os.environ.get("MIRRORLAKE_TEST_BOOTSTRAP_B")
    if east and west:
        yield ClusterPair(east, west, None)
        return
    embedded = start_clusters(["east", "west"], directory)
    try:
        yield ClusterPair(embedded["east"].bootstrap_servers, embedded["west"].bootstrap_servers, embedded)
    finally:
        stop_clusters(embedded)


@contextmanager
def own_topics(clusters: ClusterPair) -> Iterator[None]:
    """Delete, behind the block, the topics that were made in it."""
    admins = [AdminClient({"bootstrap.servers": address}) for address in (clusters.east, clusters.west)]
    before = [set(admin.list_topics(timeout=20).topics) for admin in admins]
    try:
        yield
    finally:
        for admin, known in zip(admins, before, strict=True):
            made = [name for name in admin.list_topics(timeout=20).topics if name not in known and name[:2] != "__"]
            for future in admin.delete_topics(made).values() if made else ():
                future.result(20)
            while set(made) & set(admin.list_topics(timeout=20).topics):
                time.sleep(0.05)
