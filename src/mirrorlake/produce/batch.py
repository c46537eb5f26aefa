"""The staged offsets of a flow that go to the target next, the shards that write them, and whether
the files hold them in order. Pure.

The unit is a *batch*: ranges of offsets above the flow's progress, taken from the index of the
stage in the order in which files came. It is cut into *shards*. A source partition belongs to the
same shard for ever, and a shard writes with one `transactional.id`. So only the task that
initialised that id last can write the partition, whatever older attempt is still alive somewhere.
"""

import heapq
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from mirrorlake.offsets.generations import FIRST, GenerationIds, TargetGeneration
from mirrorlake.offsets.partition_ranges import FileRange, PartitionRanges
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.progress import NOTHING_MAPPED, Floor
from mirrorlake.offsets.ranges import NO_END
from mirrorlake.offsets.runs import CommittedMetadata, Written
from mirrorlake.offsets.spans import Span, outside, spans_of
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.produce.file_order import chain_of, in_order


@dataclass(frozen=True)
class PartitionPlan:
    """A batch's offsets of one source partition: `first` to `last`, inclusive.

    `floor` is where the map ends; between it and `first` there is nothing to produce. `unmapped`
    was produced behind the floor and is still on its way into the map; until it has arrived, the
    metadata of the committed position names it. `spans` have record counts, also for offsets beyond
    `first` and `last` (`offsets/spans.py: spans_of`); None if the index does not know what will be
    read. With `restores_only` nothing new is written: an operator has stopped the partition, and
    records that the target has already may lack their rows of the map. `by_content`: the lake is
    older than the target, and this is all that the target took. `source_ids` and `target_id`
    identify the generations of the topics, whatever numbers another copy of the lake has for them.
    """

    topic: str
    partition: int
    target_topic: str
    floor: Floor
    first: int
    last: int
    unmapped: tuple[Written, ...] = ()
    spans: tuple[Span, ...] | None = None
    restores_only: bool = False
    by_content: bool = False
    source_ids: GenerationIds = ()
    target_id: str = ""

    @property
    def generation(self) -> int:
        """The generation of the source topic that the offsets belong to."""
        return self.floor.generation

    def metadata(self, written: Sequence[Written]) -> CommittedMetadata:
        """The metadata of a committed position of the partition."""
        numbers = (self.generation, self.floor.target_generation)
        source_id = dict(self.source_ids).get(self.generation, "")
        return CommittedMetadata(*numbers, tuple(written), source_id, self.target_id)

    @property
    def key(self) -> TopicAndPartition:
        """The source partition."""
        return self.topic, self.partition

    @property
    def target_key(self) -> TopicAndPartition:
        """The target partition."""
        return self.target_topic, self.partition

    @property
    def place(self) -> PartitionGeneration:
        """The generation of the source partition that the offsets belong to."""
        return PartitionGeneration(self.topic, self.partition, self.floor.generation)

    @property
    def outside(self) -> list[tuple[int, int]]:
        """Offsets of its spans outside the batch: up to two ranges, below and above."""
        return outside(self.spans or (), self.first, self.last)

    def of_whole_spans(self) -> "PartitionPlan":
        """The same plan for all offsets of its spans."""
        ends = [end for one in self.outside for end in one]
        return (
            replace(self, first=min(self.first, *ends), last=max(self.last, *ends))
            if ends
            else self
        )


@dataclass(frozen=True)
class ShardPlan:
    """The partitions that one transactional producer writes in this batch, and the files to read,
    in order; `storage` has the options for opening them (`Place.options`)."""

    shard: int
    partitions: tuple[PartitionPlan, ...]
    files: tuple[str, ...]
    record_count: int
    source_cluster: str = ""
    storage: Mapping[str, str] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class BatchPlan:
    """A whole batch. If `ordered`, reading each shard's files one after another yields every
    partition's offsets in rising order; if not, the rows have to be sorted. `record_count` is exact
    unless a range of a file was cut. `upcoming` are all partitions that have something above the
    flow's progress, in this batch or not."""

    shards: tuple[ShardPlan, ...]
    ordered: bool
    record_count: int
    upcoming: Collection[TopicAndPartition] = ()

    @property
    def partitions(self) -> list[PartitionPlan]:
        """The partitions of all shards."""
        return [plan for shard in self.shards for plan in shard.partitions]

    @property
    def files(self) -> set[str]:
        """The files of all shards."""
        return {path for shard in self.shards for path in shard.files}


def shard_of(topic: str, partition: int, produce_tasks: int) -> int:
    """A source partition's shard: neighbouring partitions of a topic go to different shards."""
    return (zlib.crc32(topic.encode()) + partition) % produce_tasks


def plan_batch(
    index: StageIndex,
    source_cluster: str,
    floors: Mapping[TopicAndPartition, Floor],
    remote_topic: Callable[[str], str | None],
    produce_tasks: int,
    max_records: int,
    blocked: Container[TopicAndPartition] = frozenset(),
    targets: Mapping[str, TargetGeneration] | None = None,
    stopped: Collection[PartitionGeneration] = frozenset(),
    unrestored: Collection[PartitionGeneration] = frozenset(),
    whole: Mapping[PartitionGeneration, int] = MappingProxyType({}),
    among: Collection[TopicAndPartition] | None = None,
) -> BatchPlan:
    """The next batch of a flow, from what the stage holds above its progress.

    A batch never holds two generations of a partition: the oldest goes first.

    Args:
        index, source_cluster: the stage, and the cluster whose topics are produced.
        floors: where the flow goes on, by source partition.
        remote_topic: names of targets; None leaves a topic out: not selected, paused, or refused,
            which is reported elsewhere.
        produce_tasks: into how many shards the batch is dealt.
        max_records: about how many records.
        blocked: partitions that are left out.
        targets: the living generations of target topics, for partitions without a map.
        stopped: generations of partitions that are left out; newer ones go on.
        unrestored: those of them whose map may lack what the target has: a little of each is
            planned, to restore its rows.
        whole: the offset up to which a partition is taken at once, as soon as the stage reaches it.
        among: the only partitions to consider (`flow_state.Upcoming`); None for all.
    """
    over: dict[TopicAndPartition, set[int]] = defaultdict(set)
    for place in set(stopped) - set(unrestored):
        over[place.topic_partition].add(place.generation)
    takes: dict[TopicAndPartition, _PartitionTake] = {}
    for topic, partitions in index.topics(source_cluster, among).items():
        name = remote_topic(topic)
        if name is None:
            continue
        start = replace(NOTHING_MAPPED, target_generation=(targets or {}).get(name, FIRST).number)
        for partition, ranges in partitions.items():
            if (topic, partition) not in blocked:
                floor = floors.get((topic, partition), start)
                if (topic, partition) in over:
                    floor = _behind(floor, ranges, over[topic, partition])
                take = _PartitionTake(topic, partition, name, ranges, floor, unrestored=unrestored)
                if take.upcoming is not None and take.takes_up_to(whole.get(take.place)):
                    takes[topic, partition] = take
    _fill(list(takes.values()), produce_tasks, max_records)
    members: dict[int, list[_PartitionTake]] = defaultdict(list)
    for key in sorted(takes):
        if takes[key].record_count:
            members[shard_of(*key, produce_tasks)].append(takes[key])
    shards, ordered = [], True
    for shard in sorted(members):
        counted = [take.counted() for take in members[shard]]
        chains = [chain for _, held in counted if (chain := chain_of(held)) is not None]
        files = in_order(chains) if len(chains) == len(counted) else None
        ordered = ordered and files is not None
        shards.append(
            ShardPlan(
                shard,
                tuple(
                    take.plan(spans)
                    for take, (spans, _) in zip(members[shard], counted, strict=True)
                ),
                tuple(index.path(file) for file in files or ()),
                sum(take.record_count for take in members[shard]),
                source_cluster,
            )
        )
    count = sum(shard.record_count for shard in shards)
    return BatchPlan(tuple(shards), ordered, count, frozenset(takes))


def _behind(floor: Floor, ranges: PartitionRanges, stopped: Container[int]) -> Floor:
    """Where a partition goes on if some of its generations are left out."""
    while True:
        upcoming = next(ranges.above(floor.generation, floor.next), None)
        if upcoming is None or upcoming.generation not in stopped:
            return floor
        floor = replace(floor.of_generation(upcoming.generation), reached=NO_END)


class _PartitionTake:
    """What a batch takes of a partition: from the next offset up to `last`, range by range."""

    def __init__(
        self,
        topic: str,
        partition: int,
        target_topic: str,
        ranges: PartitionRanges,
        floor: Floor,
        *,
        unrestored: Container[PartitionGeneration],
    ) -> None:
        self.topic, self.partition, self.target_topic = topic, partition, target_topic
        self.record_count = 0
        self._ranges = ranges
        self._left: Iterator[FileRange] = ranges.above(floor.generation, floor.next)
        self.upcoming = next(self._left, None)
        self.floor = (
            floor if self.upcoming is None else floor.of_generation(self.upcoming.generation)
        )
        self.first = self.floor.next
        self.last = -1
        self.place = PartitionGeneration(topic, partition, self.floor.generation)
        self._restores_only = self.place in unrestored
        self._by_content = False

    def takes_up_to(self, last: int | None) -> bool:
        """Take all up to an offset; None: nothing yet. False if the stage has not reached it."""
        if last is None:
            return True
        self._by_content = True
        generation = self.floor.generation
        above = self._ranges.above(generation, self.first)
        staged = max(one.last for one in above if one.generation == generation)
        while staged >= last > self.last and self.upcoming is not None:
            self.take_next(NO_END, NO_END)
        return staged >= last

    def take_next(self, max_records: int, share: int) -> int:
        """Take the upcoming range, or `share` records of it if it holds more than `max_records`;
        returns the number of records."""
        file_range = self.upcoming
        assert file_range is not None
        first = max(file_range.first, self.first, self.last + 1)
        span = file_range.last - file_range.first + 1
        count = max(1, round(file_range.record_count * (file_range.last - first + 1) / span))
        self.upcoming = next(self._left, None)
        self.last = max(self.last, file_range.last)
        if count > max_records:
            self.last = first + max(1, span * share // file_range.record_count) - 1
            count, self.upcoming = share, None
        self.record_count += count
        if self._restores_only and not self._by_content:
            self.upcoming = None  # mostly nothing has to be restored, and this is read in vain
        return count

    def counted(self) -> tuple[tuple[Span, ...], Sequence[FileRange]]:
        """The spans of the taken offsets, and the ranges of files that hold them."""
        within = partial(self._ranges.uncut.within, self.floor.generation)
        return spans_of(within, self.first, self.last)

    def plan(self, spans: tuple[Span, ...]) -> PartitionPlan:
        return PartitionPlan(
            self.topic,
            self.partition,
            self.target_topic,
            floor=self.floor,
            first=self.first,
            last=self.last,
            spans=spans,
            restores_only=self._restores_only,
            by_content=self._by_content,
        )


def _fill(takes: Sequence[_PartitionTake], produce_tasks: int, max_records: int) -> None:
    """Take ranges in the order in which their files came, until the batch is full; each partition's
    in the order of offsets, and one in few large files in parts, so that others get their turn."""
    share = max(1, max_records // max(1, min(len(takes), produce_tasks)))
    queue = [(take.upcoming.file, at) for at, take in enumerate(takes) if take.upcoming is not None]
    heapq.heapify(queue)
    taken = 0
    while queue and taken < max_records:
        _, at = heapq.heappop(queue)
        take = takes[at]
        taken += max(1, take.take_next(max_records, share))
        if take.upcoming is not None:
            heapq.heappush(queue, (take.upcoming.file, at))
