"""Notebook 04: rehearses a failover. Changes nothing unless the widget `dry_run` is no."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

import mirrorlake
from mirrorlake.config.topology import Topology
from mirrorlake.devtools.local.cluster import STATE_FILE, EmbeddedCluster
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.errors import InputError, ReplicationError
from mirrorlake.kafka.connections import Connections
from mirrorlake.notebook.host import Notebook

#: The group that a rehearsal on the demo's clusters creates, if it does not exist.
DEMO_GROUP = "orders-service"

_MOVES = pa.schema(
    [("group", pa.string()), ("topic", pa.string()), ("partition", pa.int32())]
    + [("position", pa.int64()), ("to_topic", pa.string()), ("to_position", pa.int64())]
    + [("before", pa.int64()), ("read_again_at_most", pa.int64())]
    + [("done", pa.string()), ("detail", pa.string())]
)


@dataclass(frozen=True)
class Drill:
    """A rehearsal's result: `moves` has a row per group and partition, `sentences` explain; `left`
    is what a failover that was carried out left undone."""

    moves: list[dict[str, Any]]
    sentences: list[str]
    left: tuple[str, ...] = ()


def rehearse(nb: Notebook) -> Drill:
    """Plan the failover of the groups in widget `groups` (empty: all); do it if `dry_run` is no.

    A failover that is carried out is recorded as an MLflow run. Raises InputError, and
    ClusterUnreachable when the target does not answer.
    """
    dry_run = nb.widget("dry_run").lower() not in ("no", "false", "0")
    named = tuple(name.strip() for name in nb.widget("groups").split(",") if name.strip()) or None
    lake = mirrorlake.open(nb.topology_file, read_only=dry_run, spark=nb.session)
    flow = lake.flows[nb.flow].name
    with _clusters(lake.internals.topology, demo_group=named is None) as sentences:
        _check_same(nb, lake)
        moves_planned = lake.failover(flow, named, dry_run=dry_run)
    left = () if dry_run else tuple(moves_planned.left)
    return Drill(moves_planned.groups, [*sentences, *_sentences(moves_planned)], left)


def check(drill: Drill) -> None:
    """Raise ReplicationError if a failover that was carried out left something: a job that runs the
    page fails by that, as the command does."""
    if drill.left:
        raise ReplicationError(f"the failover is not complete: {drill.left[0]}")


def _check_same(nb: Notebook, lake: mirrorlake.OpenLake) -> None:
    """Raise InputError if the topology's lake is not the one that the widget names."""
    named, moved = nb.lake.internals, lake.internals
    if named.stored_id != moved.stored_id:
        raise InputError(
            f"the widget lake names {named.place}, and the topology file another lake, "
            f"{moved.place}; let both name the same one"
        )


def moves(drill: Drill) -> pa.Table:
    """A row per group and partition: both positions, and what was done."""
    rows = [{name: row.get(name) for name in _MOVES.names} for row in drill.moves]
    return pa.Table.from_pylist(rows, schema=_MOVES)


def _sentences(moves_planned: mirrorlake.Moves) -> list[str]:
    sentences = []
    if moves_planned.dry_run:
        sentences.append("This was a rehearsal: nothing was changed. Set dry_run to no to do it.")
    if moves_planned.origin_unreachable:
        sentences.append(f"{moves_planned.origin_unreachable}: the newest checkpoints were used")
    sentences += moves_planned.warnings
    sentences += [f"left: {line}" for line in moves_planned.left]
    if not moves_planned.left:
        sentences.append(
            f"nothing is left: {len(moves_planned.groups)} positions are, or would be, where they "
            "belong"
        )
    return sentences


@contextmanager
def _clusters(topology: Topology, demo_group: bool) -> Iterator[list[str]]:
    """Keep clusters running: the demo's are started for the rehearsal, then stopped."""
    folder = topology.directory / "clusters"
    stopped = [alias for alias in topology.clusters if _is_stopped(folder / alias)]
    if not stopped:
        yield []
        return
    started = start_clusters(stopped, folder)
    try:
        sentences = [f"started the demo's clusters {', '.join(stopped)} for this rehearsal"]
        if demo_group and _made_demo_group(topology):
            sentences.append(
                f"made the consumer group {DEMO_GROUP}, half way through its topics: the demo's "
                "own has moved"
            )
        yield sentences
    finally:
        stop_clusters(started)


def _is_stopped(directory: Path) -> bool:
    return (directory / STATE_FILE).exists() and not EmbeddedCluster.attach(directory).running


def _made_demo_group(topology: Topology) -> bool:
    """Commit half of the source's topics for a group, unless done before: the demo's has moved."""
    flow = topology.active_flows()[0]
    connections = Connections(topology)
    if DEMO_GROUP in connections.groups(flow.source).listing().states:
        return False
    admin = connections.admin(flow.source)
    selection = flow.selection
    keys = [
        (name, partition)
        for name, info in admin.topics().items()
        if selection.selects(name) and name != "heartbeats"
        for partition in range(info.partitions)
    ]
    half = [
        TopicPartition(topic, partition, end // 2)
        for (topic, partition), end in admin.end_offsets(keys).items()
    ]
    settings = {**connections.client(flow.source, "consumer"), "group.id": DEMO_GROUP}
    with closing(Consumer(settings)) as consumer:
        consumer.commit(offsets=half, asynchronous=False)
    return bool(half)
