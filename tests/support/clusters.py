"""The two Kafka clusters that integration tests run against."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
