"""Reads stretches of partitions, and MirrorMaker 2's offset syncs, for a migration."""

import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from threading import Event

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import InputError
from mirrorlake.kafka.answered_offsets import Bounds
from mirrorlake.kafka.connections import Connections
from mirrorlake.migrate.matching import Stretch
from mirrorlake.migrate.syncs import Sync, living
from mirrorlake.mm2.formats import decode_offset_sync
from mirrorlake.mm2.topics import offset_syncs_place, offset_syncs_separator
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.encoding import Hops
from mirrorlake.verify.digest import digests_of
from mirrorlake.verify.log_reader import LogReader, Throttle

_TEXT_AND_NUMBER = 6  # bytes in a sync's key besides the topic: its length, and a partition


@dataclass(frozen=True)
class Read:
    """A stretch, and the timestamps of its records (ms)."""

    stretch: Stretch
    timestamps: np.ndarray


def read_stretch(
    log: LogReader,
    key: TopicAndPartition,
    first: int,
    end: int,
    *,
    bounds: Bounds,
    hops: Hops | None,
) -> Read:
    """Read the records of a partition from `first` to `end`, exclusive, within its bounds. Raises
    ClusterUnusable."""
    first, end = max(first, bounds.start), min(end, bounds.end)
    side = digests_of(log.read(key, first, end) if first < end else (), hops)
    offsets = side.offsets.tolist()
    return Read(
        Stretch(offsets, side.digests, end, first <= bounds.start, end >= bounds.end),
        side.timestamps,
    )


def log_of(connections: Connections, alias: str) -> AbstractContextManager[LogReader]:
    """A context manager with a reader of a cluster."""
    throttle = Throttle(None, time.monotonic, Event().wait)
    return closing(LogReader(alias, connections.client(alias, "consumer"), throttle))


def read_syncs(
    connections: Connections, flow: ResolvedFlow, partitions: Collection[TopicAndPartition]
) -> dict[TopicAndPartition, list[Sync]]:
    """Read the offset syncs of source partitions that MirrorMaker 2 left on either cluster
    (KIP-716); partitions without any are missing. Raises ClusterUnusable."""
    syncs_by_partition: dict[TopicAndPartition, list[Sync]] = defaultdict(list)
    wanted = frozenset(partitions)
    names = pa.array(sorted({topic.encode() for topic, _ in wanted}), pa.binary())
    place = offset_syncs_place(flow)
    ours = place if flow.settings.emit_offset_syncs_enabled else None
    for alias, other in ((flow.source, flow.target), (flow.target, flow.source)):
        for topic in sorted(connections.admin(alias).topics()):
            if offset_syncs_separator(topic, other) is None or (alias, topic) == ours:
                continue
            with log_of(connections, alias) as log:
                for batch in log.read((topic, 0), *log.bounds((topic, 0))):
                    for key, sync in _syncs(batch, names):
                        if key in wanted:
                            syncs_by_partition[key].append(sync)
    return {key: living(syncs) for key, syncs in syncs_by_partition.items()}


def _syncs(batch: pa.RecordBatch, names: pa.Array) -> Iterator[tuple[TopicAndPartition, Sync]]:
    """The syncs of the named topics in a batch; the others, usually most, are not decoded."""
    keys, values = batch.column("key"), batch.column("value")
    topics = pc.binary_slice(keys, 2, -4)
    mine = pc.fill_null(
        pc.and_(pc.is_in(topics, names), pc.greater(pc.binary_length(keys), _TEXT_AND_NUMBER)),
        False,
    )
    for key, value in zip(
        keys.filter(mine).to_pylist(), values.filter(mine).to_pylist(), strict=True
    ):
        with suppress(InputError):  # a tombstone, or a user's own record
            sync = decode_offset_sync(key, value)
            yield (sync.topic, sync.partition), Sync(sync.upstream, sync.downstream)
