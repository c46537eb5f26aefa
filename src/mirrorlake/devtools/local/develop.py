"""Kafka clusters for development: started by one command, left running, stopped by another."""

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from mirrorlake.devtools.local.cluster import STATE_FILE, EmbeddedCluster
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.devtools.local.load import load_pid, loaded_servers, start_load, stop_load
from mirrorlake.errors import InputError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class ClusterStatus:
    """The status of a development cluster. `load_pid` is the process that writes to it, if any."""

    name: str
    bootstrap_servers: str
    cluster_id: str
    running: bool
    pids: list[int]
    log_directory: Path
    load_pid: int | None = None


def up(
    directory: Path,
    names: list[str],
    brokers: int,
    *,
    topology: Path | None,
    load: int | None = None,
) -> list[ClusterStatus]:
    """Start clusters that outlive this process; running ones stay as they are.

    With `load`, a process writes so many records a second to topics of the first one. Writes a
    topology file for them, unless `topology` is None, the file exists, or there is only one cluster
    (a topology without a flow is not valid). Raises InputError for names that cannot be a folder, a
    folder with another number of brokers, and a port in use.
    """
    _check(names)
    directory.mkdir(parents=True, exist_ok=True)
    clusters = start_clusters(names, directory, brokers, detached=True)
    if topology is not None and len(clusters) > 1 and not topology.exists():
        topology.parent.mkdir(parents=True, exist_ok=True)
        head = "# Written by `mirrorlake local up`; yours to change.\n"
        topology.write_text(head + topology_text(clusters), encoding="utf-8")
    if load is not None:
        first = clusters[names[0]]
        start_load(directory, first.bootstrap_servers, first.brokers, load)
    return _statuses(directory, clusters)


def down(directory: Path) -> list[ClusterStatus]:
    """Stop all clusters of a folder and their load; data and ports stay for the next `up`."""
    stop_load(directory)
    clusters = _clusters_in(directory)
    stop_clusters(clusters)
    return _statuses(directory, clusters)


def status(directory: Path) -> list[ClusterStatus]:
    """Return the status of all clusters of a folder, running or not."""
    return _statuses(directory, _clusters_in(directory))


def topology_text(clusters: dict[str, EmbeddedCluster], topics: str = ".*") -> str:
    """A topology file for clusters, with a flow of these topics from the first to the second."""
    source, target = list(clusters)[:2]
    content: dict[str, object] = {
        "clusters": {
            name: {"bootstrap_servers": cluster.bootstrap_servers}
            for name, cluster in clusters.items()
        },
        "lake": {"path": "./lake"},
        "flows": {f"{source}->{target}": {"topics": [topics]}},
    }
    return yaml.safe_dump(content, sort_keys=False)


def _check(names: list[str]) -> None:
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if not names or wrong or len(set(names)) < len(names):
        raise InputError(
            "cluster names must be different and of letters, digits, _ and -"
            + (f": {wrong[0]!r} is not" if wrong else "")
        )


def _clusters_in(directory: Path) -> dict[str, EmbeddedCluster]:
    clusters = [
        EmbeddedCluster.attach(state.parent) for state in sorted(directory.glob(f"*/{STATE_FILE}"))
    ]
    return {cluster.name: cluster for cluster in clusters}


def _statuses(directory: Path, clusters: dict[str, EmbeddedCluster]) -> list[ClusterStatus]:
    pid, loaded = load_pid(directory), loaded_servers(directory)
    return [
        _status_of(cluster, pid if cluster.bootstrap_servers == loaded else None)
        for cluster in clusters.values()
    ]


def _status_of(cluster: EmbeddedCluster, load: int | None) -> ClusterStatus:
    return ClusterStatus(
        cluster.name,
        cluster.bootstrap_servers,
        cluster.cluster_id,
        running=cluster.running,
        pids=cluster.pids,
        log_directory=cluster.log_file(0).parent,
        load_pid=load,
    )
