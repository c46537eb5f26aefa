"""Which staged offsets of a flow go to the target next, by whom, and whether the files hold them in order. Pure.

The unit is a *batch*: the rows that new commits of `records` brought for a flow. It is cut into *shards*. A source
partition belongs to the same shard for ever, and a shard writes with one `transactional.id`: so whoever initialises
that id last is the only one who can write the partition, whatever older attempt is still alive somewhere.
"""

import zlib
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mirrorlake.core.runs import Written


@dataclass(frozen=True)
class FileRange:
    """The records of one partition in one file of the stage; offsets inclusive. `version` is the commit of the file.

    `generation` counts the lives of a topic that was deleted and made again at the source: 0 for the first.
    """

    path: str
    version: int
    topic: str
    partition: int
    first: int
    last: int
    record_count: int
    generation: int = 0


@dataclass(frozen=True)
class Floor:
    """Where the map ends for a partition: `source` is the next source offset to map, of this `generation` of the topic,
    `target` the target offset after the last one mapped (None when nothing has been mapped yet)."""

    source: int
    target: int | None
    generation: int = 0


@dataclass(frozen=True)
class PartitionPlan:
    """What a batch holds of one source partition: offsets `first` to `last`, inclusive, as far as not below `floor`.

    `unmapped` is what was produced below the floor and is still on its way into the map; it stays in the metadata of
    the committed position until it has arrived there.
    """

    topic: str
    partition: int
    target_topic: str
    floor: Floor
    first: int
    last: int
    unmapped: tuple[Written, ...] = ()

    @property
    def generation(self) -> int:
        """The life of the topic that the offsets belong to."""
        return self.floor.generation


@dataclass(frozen=True)
class ShardPlan:
    """The partitions that one transactional producer writes in this batch, and the files to read, in order."""

    shard: int
    partitions: tuple[PartitionPlan, ...]
    files: tuple[str, ...]
    record_count: int


@dataclass(frozen=True)
class BatchPlan:
    """A whole batch. `ordered` says that reading each shard's files one after another yields every partition's offsets
    in rising order; where it is false, the rows have to be sorted."""

    shards: tuple[ShardPlan, ...]
    ordered: bool
    record_count: int


NOTHING_MAPPED = Floor(0, None)


def shard_of(topic: str, partition: int, shard_count: int) -> int:
    """The shard of a source partition: neighbouring partitions of a topic go to different shards."""
    return (zlib.crc32(topic.encode()) + partition) % shard_count


def plan_batch(
    ranges: Iterable[FileRange],
    floors: Mapping[tuple[str, int], Floor],
    remote_topic: Callable[[str], str | None],
    shard_count: int,
    held: Container[tuple[str, int]] = frozenset(),
) -> BatchPlan:
    """Deal what new files hold over shards.

    Left out are ranges wholly below their partition's floor, the partitions in `held`, and topics that `remote_topic`
    gives no name (None): not selected, paused, or refused, which is told elsewhere. Of a partition with ranges of two
    generations only the elder's are planned (see `cut_by_generations`).
    """
    by_partition: dict[tuple[str, int], list[FileRange]] = defaultdict(list)
    starts: dict[tuple[str, int], Floor] = {}
    names: dict[str, str | None] = {}
    for item in ranges:
        if item.topic not in names:
            names[item.topic] = remote_topic(item.topic)
        key = (item.topic, item.partition)
        if names[item.topic] is None or key in held:
            continue
        floor = floor_of(item, floors.get(key, NOTHING_MAPPED))
        if floor is None or item.last < floor.source or starts.get(key, floor).generation < floor.generation:
            continue
        if key in starts and starts[key].generation > floor.generation:
            del by_partition[key]
        starts[key] = floor
        by_partition[key].append(item)
    members: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for key in sorted(by_partition):
        members[shard_of(*key, shard_count)].append(key)
    shards = []
    ordered = True
    for shard in sorted(members):
        held = {key: sorted(by_partition[key], key=_file_order) for key in members[shard]}
        ordered = ordered and all(_rises(items) for items in held.values())
        files = sorted({_file_order(item) for items in held.values() for item in items})
        shards.append(
            ShardPlan(
                shard,
                tuple(_partition_plan(items, starts[key], str(names[key[0]])) for key, items in held.items()),
                tuple(path for _, path in files),
                sum(item.record_count for items in held.values() for item in items),
            )
        )
    return BatchPlan(tuple(shards), ordered, sum(shard.record_count for shard in shards))


def floor_of(item: FileRange, mapped: Floor) -> Floor | None:
    """Where to go on with a range: at the map's end, at the start of a newer generation, or (None) not at all."""
    if item.generation < mapped.generation:
        return None
    return mapped if item.generation == mapped.generation else Floor(0, mapped.target, item.generation)


def cut_by_generations(ranges: Sequence[FileRange]) -> tuple[list[FileRange], int | None]:
    """Keep the commits before the first one in which a partition begins a newer generation behind an elder one.

    Returns what is kept and the version up to which that is all; (everything, None) where there is no such commit.
    """
    eldest: dict[tuple[str, int], int] = {}
    for item in sorted(ranges, key=_file_order):
        if item.generation > eldest.setdefault((item.topic, item.partition), item.generation):
            return [other for other in ranges if other.version < item.version], item.version - 1
    return list(ranges), None


def _file_order(item: FileRange) -> tuple[int, str]:
    return item.version, item.path


def _rises(items: list[FileRange]) -> bool:
    """Whether a partition's files, read in this order, hold ranges that do not overlap and rise."""
    return all(left.last < right.first for left, right in zip(items, items[1:], strict=False))


def _partition_plan(items: list[FileRange], floor: Floor, target_topic: str) -> PartitionPlan:
    topic, partition = items[0].topic, items[0].partition
    first, last = min(item.first for item in items), max(item.last for item in items)
    return PartitionPlan(topic, partition, target_topic, floor, first, last)


def cut_by_versions(ranges: Iterable[FileRange], max_records: int) -> tuple[list[FileRange], int | None]:
    """Keep whole commits, oldest first, until `max_records` is reached (at least one commit).

    Returns what is kept and its newest version; (…, None) when there is nothing.
    """
    kept: list[FileRange] = []
    newest: int | None = None
    count = 0
    for item in sorted(ranges, key=_file_order):
        if newest is not None and item.version != newest and count >= max_records:
            break
        kept.append(item)
        newest = item.version
        count += item.record_count
    return kept, newest
