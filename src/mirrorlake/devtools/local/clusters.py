"""Several embedded clusters, started and stopped together."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.spark.jars import kafka_jars
from mirrorlake.threads import side_by_side


def start_clusters(
    names: Sequence[str],
    directory: Path,
    brokers: int = 1,
    *,
    properties: dict[str, str] | None = None,
    heap: str = "512m",
    detached: bool = False,
) -> dict[str, EmbeddedCluster]:
    """Start clusters in parallel, each in `directory/<name>`; if one fails, stop the started."""
    kafka_jars()
    clusters = {
        name: EmbeddedCluster(
            name,
            directory / name,
            brokers,
            ports=None,
            properties=properties,
            heap=heap,
            detached=detached,
        )
        for name in names
    }
    new = {name: cluster for name, cluster in clusters.items() if not cluster.pids}
    with ThreadPoolExecutor(max_workers=max(1, len(clusters))) as pool:
        starts = [pool.submit(cluster.start) for cluster in clusters.values()]
    failures = [
        failure for failure in (start.exception() for start in starts) if failure is not None
    ]
    if failures:
        stop_clusters(new)
        raise failures[0]
    return clusters


def stop_clusters(clusters: dict[str, EmbeddedCluster]) -> None:
    """Stop clusters in parallel."""
    side_by_side(EmbeddedCluster.stop, clusters.values())
