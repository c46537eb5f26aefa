"""Offset runs: how the map between source and target offsets stays exact and small.

A *run* is a sequence of consecutive staged records of one source partition that got consecutive
offsets in one target partition. Source offsets inside a run may have gaps (compaction, transaction
markers, aborted records), so a run holds *segments*: ranges of offsets that are equally far apart.
A transactional source with a marker behind every record is one segment of stride 2; a plain topic
is one segment of stride 1.

Offsets `first` and `last` are inclusive; a *position* is the next offset to read (exclusive end).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

#: A run with more segments than this is split, so that no map row grows without bound.
MAX_SEGMENTS = 10_000
#: Up to this many values Python is faster than numpy.
FEW = 32


@dataclass(frozen=True)
class Segment:
    """`record_count` records: the k-th (from 0) has source offset `source_first + k * stride`,
    target offset `target_first + k`. A segment of one record has stride 1."""

    source_first: int
    stride: int
    target_first: int
    record_count: int

    @property
    def source_last(self) -> int:
        """Source offset of the last record, inclusive."""
        return self.source_first + (self.record_count - 1) * self.stride

    @property
    def target_last(self) -> int:
        """Target offset of the last record, inclusive."""
        return self.target_first + self.record_count - 1


@dataclass(frozen=True)
class Run:
    """A row of `offset_map` as a batch writes it: rising segments with consecutive target offsets.
    Rows that `maintain` merged (sql/queries/merge_map.sql) may have holes between segments."""

    segments: tuple[Segment, ...]

    @property
    def source_first(self) -> int:
        """Source offset of the first record, inclusive."""
        return self.segments[0].source_first

    @property
    def source_last(self) -> int:
        """Source offset of the last record, inclusive."""
        return self.segments[-1].source_last

    @property
    def target_first(self) -> int:
        """Target offset of the first record, inclusive."""
        return self.segments[0].target_first

    @property
    def target_last(self) -> int:
        """Target offset of the last record, inclusive."""
        return self.segments[-1].target_last

    @property
    def record_count(self) -> int:
        """Records in this run; equals `target_last - target_first + 1`."""
        return sum(segment.record_count for segment in self.segments)


def segments_of(offsets: Sequence[int] | np.ndarray, target_first: int) -> list[Segment]:
    """Cut strictly rising source offsets into segments; the first gets target offset
    `target_first`. Raises ValueError for others."""
    array = np.asarray(offsets, dtype=np.int64)
    count = len(array)
    if count and is_dense(array):
        return [Segment(int(array[0]), 1, target_first, count)]
    steps = np.diff(array)
    if not bool(np.all(steps > 0)):
        raise ValueError("source offsets do not rise")
    return _greedy(array, steps, target_first)


def is_dense(offsets: np.ndarray) -> bool:
    """Whether each offset is one more than the one before. A batch may have few offsets of each of
    hundreds of partitions, for which numpy takes longer than all the rest."""
    count = len(offsets)
    if not count or int(offsets[-1]) - int(offsets[0]) != count - 1:
        return not count
    if count <= FEW:
        first = int(offsets[0])
        return bool(offsets.tolist() == list(range(first, first + count)))
    return bool(np.all(np.diff(offsets) == 1))


def _greedy(array: np.ndarray, steps: np.ndarray, target_first: int) -> list[Segment]:
    """Take the longest range of equal steps from each start; the step between is in none."""
    changes = np.flatnonzero(steps[1:] != steps[:-1]) + 1
    ends = np.append(changes, len(steps))  # exclusive ends of the groups of equal steps
    segments: list[Segment] = []
    start, group, count = 0, 0, len(array)
    while start < count:
        while group < len(ends) and ends[group] <= start:
            group += 1
        if start == count - 1:
            segments.append(Segment(int(array[start]), 1, target_first + start, 1))
            break
        end = int(ends[group])  # array[start..end] are equally far apart
        segments.append(
            Segment(int(array[start]), int(steps[start]), target_first + start, end - start + 1)
        )
        start = end + 1
    return segments


def runs_of(segments: Iterable[Segment], max_segments: int = MAX_SEGMENTS) -> list[Run]:
    """Join rising segments into as few runs as target offsets and `max_segments` allow."""
    runs: list[Run] = []
    current: list[Segment] = []
    for segment in segments:
        breaks = bool(current) and segment.target_first != current[-1].target_last + 1
        if current and (breaks or len(current) >= max_segments):
            runs.append(Run(tuple(current)))
            current = []
        if current and _continues(current[-1], segment):
            last = current.pop()
            segment = replace(last, record_count=last.record_count + segment.record_count)
        current.append(segment)
    if current:
        runs.append(Run(tuple(current)))
    return runs


def _continues(left: Segment, right: Segment) -> bool:
    """Whether two neighbouring segments are one: same stride, also between them."""
    same = left.stride == right.stride or right.record_count == 1
    return same and left.record_count > 1 and right.source_first == left.source_last + left.stride


@dataclass(frozen=True)
class Written:
    """`record_count` consecutive staged records, the first at source offset `source_first`, that
    got consecutive target offsets from `target_first` on. A Kafka transaction leaves this in the
    flow's group, so that lost map rows can be rebuilt from the stage: it names no gaps, because the
    stage knows them."""

    source_first: int
    target_first: int
    record_count: int


def add_written(written: Sequence[Written], segments: Iterable[Segment]) -> list[Written]:
    """Add segments to what has been written, joining them where target offsets continue."""
    joined = list(written)
    for segment in segments:
        last = joined[-1] if joined else None
        if last is not None and last.target_first + last.record_count == segment.target_first:
            joined[-1] = replace(last, record_count=last.record_count + segment.record_count)
        else:
            joined.append(Written(segment.source_first, segment.target_first, segment.record_count))
    return joined


@dataclass(frozen=True)
class CommittedMetadata:
    """The metadata of a committed position: everything produced since the map was last appended to,
    and the generations of the source and of the target topic that the offsets belong to.

    The numbers are the lake's own, and a restored lake assigns them again: the ids identify the
    generations (`offsets.generations.number_of`). They are empty if the lake had none, or an
    earlier version wrote the metadata.
    """

    generation: int
    target_generation: int
    written: tuple[Written, ...]
    source_id: str = ""
    target_id: str = ""


def encode_metadata(metadata: CommittedMetadata) -> str:
    """Write the metadata of a committed position.

    A text: Kafka's metadata is a string of at most `offset.metadata.max.bytes` (4,096 by default):
    `v3;<generation>;<target generation>;<source id>;<target
    id>;<source_first>,<target_first>,<count>;…`, all but the first as differences.
    """
    numbers = (metadata.generation, metadata.target_generation)
    parts = ["v3", *map(str, numbers), metadata.source_id, metadata.target_id]
    source = target = 0
    for part in metadata.written:
        parts.append(
            f"{part.source_first - source},{part.target_first - target},{part.record_count}"
        )
        source, target = part.source_first, part.target_first
    return ";".join(parts)


def decode_metadata(text: str) -> CommittedMetadata:
    """Read the text of `encode_metadata`, or version 2 of it, which had a number of shards and no
    ids, or version 1, which had no target generation either. Raises ValueError."""
    version, *parts = text.split(";")
    if version not in ("v1", "v2", "v3"):
        raise ValueError(f"metadata {text[:20]!r} is not of this version")
    if version == "v1":
        parts.insert(2, "0")
    if version != "v3":
        parts = [*parts[1:3], "", "", *parts[3:]]
    generation, target_generation, source_id, target_id, *triples = parts
    written: list[Written] = []
    source = target = 0
    for triple in triples:
        step_source, step_target, count = (int(number) for number in triple.split(","))
        source, target = source + step_source, target + step_target
        written.append(Written(source, target, count))
    numbers = (int(generation), int(target_generation))
    return CommittedMetadata(*numbers, tuple(written), source_id, target_id)


def trim_written(
    written: Sequence[Written], floor_target: int | None, floor_source: int
) -> list[Written]:
    """Drop what the map has already: all below target offset `floor_target` (None: no map)."""
    if floor_target is None:
        return list(written)
    kept: list[Written] = []
    for part in written:
        end = part.target_first + part.record_count
        if end <= floor_target:
            continue
        if part.target_first < floor_target:
            part = Written(floor_source, floor_target, end - floor_target)
        kept.append(part)
    return kept


def rebuild(offsets: Sequence[int] | np.ndarray, written: Sequence[Written]) -> list[Segment]:
    """The segments of records whose map rows were lost: `offsets` from the stage, target offsets
    from the metadata.

    The k-th record behind a `Written`'s first source offset has the k-th target offset behind its
    first target offset. Raises ValueError if there are more or fewer offsets than were written, or
    others: then some are missing, as when the lake is an older copy.
    """
    array = np.asarray(offsets, dtype=np.int64)
    segments: list[Segment] = []
    start = 0
    for one in written:
        part = array[start : start + one.record_count]
        if len(part) < one.record_count:
            raise ValueError(f"{one.record_count - len(part)} records of it are not staged")
        first = one.source_first  # of a trimmed part, a position: there may be a gap
        if part[0] < first or (start and part[0] != first):
            raise ValueError(f"the target took offset {first} where the stage holds {part[0]}")
        segments.extend(segments_of(part, one.target_first))
        start += len(part)
    if start < len(array):
        raise ValueError(f"the stage holds {len(array)} records where the target took {start}")
    return segments
