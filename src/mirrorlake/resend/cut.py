"""What is to be restored: which ranges of the stage, up to which ends. Pure.

A topic that was deleted and made again is restored as it was last: from its newest generation with
records below the cut. A partition whose log went back, and so began a generation by itself, has the
records of the one before up to that offset.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mirrorlake.errors import InputError
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.offsets.generations import Begun, SourceGenerations
from mirrorlake.offsets.partition_ranges import PartitionRanges, StagedRange
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition

#: Ends of partitions' generations: the offset behind the last one that is restored.
GenerationEnds = Mapping[PartitionGeneration, int]
StagedRanges = Mapping[str, Mapping[int, PartitionRanges]]


@dataclass
class _Generations:
    """The generations of one topic: of the whole topic, and of single partitions."""

    whole: set[int] = field(default_factory=lambda: {0})
    own: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))


def ends_of(
    staged: StagedRanges,
    begun: Iterable[Begun],
    below: Mapping[TopicAndPartition, int] | None = None,
) -> GenerationEnds:
    """The ends of all that is staged, or `below` offsets; partitions without one are taken whole.

    Raises InputError for a partition of which nothing is staged.
    """
    limits = dict(below or {})
    for topic, partition in limits:
        if partition not in staged.get(topic, {}):
            raise InputError(f"the lake has no records of {topic}-{partition}")
    ends = {
        PartitionGeneration(topic, partition, generation): end
        for topic, partitions in staged.items()
        for partition, ranges in partitions.items()
        for generation, end in ranges.ends().items()
    }
    for one in begun:  # a generation ends the one before even if nothing of it is staged yet
        if one.partition is not None and one.partition in staged.get(one.topic, {}):
            place = PartitionGeneration(one.topic, one.partition, one.generation)
            ends.setdefault(place, one.first_offset or 0)
    return {key: min(end, limits.get(key.topic_partition, end)) for key, end in ends.items()}


def ends_as_of(
    staged: StagedRanges, held: Mapping[TopicAndPartition, tuple[int, int]]
) -> GenerationEnds:
    """The ends as of a time at which `held` has the generation, and the end in it, of each
    partition; a partition without an entry had nothing yet. Earlier generations are taken whole."""
    ends = {}
    for topic, partitions in staged.items():
        for partition, ranges in partitions.items():
            generation, below = held.get((topic, partition), (-1, 0))
            for number, end in ranges.ends().items():
                if number <= generation:
                    place = PartitionGeneration(topic, partition, number)
                    ends[place] = end if number < generation else min(end, below)
    return ends


class RestoredGenerations:
    """The generation that each partition is restored in, and the positions of groups there."""

    def __init__(self, ranges: Iterable[StagedRange], begun: Iterable[Begun]) -> None:
        self._restored: dict[TopicAndPartition, int] = {}
        for staged_range in ranges:
            key = (staged_range.topic, staged_range.partition)
            self._restored[key] = max(staged_range.generation, self._restored.get(key, 0))
        begun = tuple(begun)
        self._all = SourceGenerations(begun)
        self._up_to = {
            number: SourceGenerations(one for one in begun if one.generation <= number)
            for number in set(self._restored.values())
        }

    def position(self, key: TopicAndPartition, generation: int | None, offset: int) -> int | None:
        """Translate a position in a generation (None: not noted) to the restored one; None if it
        is, or may be, of a later generation."""
        restored = self._restored.get(key)
        if restored is None:
            return offset
        if generation is None:
            return None if self._all.newest(key) > restored else offset
        if generation > restored:
            return None
        return self._up_to[restored].living(PartitionGeneration(*key, generation), offset)


def ranges_below(
    source: str, staged: StagedRanges, begun: Iterable[Begun], ends: GenerationEnds
) -> dict[str, list[StagedRange]]:
    """The ranges of each staged topic to restore; counts within a file's are estimates."""
    generations: dict[str, _Generations] = defaultdict(_Generations)
    for beginning in begun:
        if beginning.partition is None:
            generations[beginning.topic].whole.add(beginning.generation)
        else:
            generations[beginning.topic].own[beginning.partition][beginning.generation] = (
                beginning.first_offset or 0
            )
    by_partition: dict[TopicAndPartition, dict[int, int]] = defaultdict(dict)
    for (topic, number, generation), end in ends.items():
        by_partition[topic, number][generation] = end
    by_topic: dict[str, list[StagedRange]] = {}
    for topic, partitions in staged.items():
        known = generations[topic]
        having = [
            one.generation
            for number, ranges in partitions.items()
            for one in ranges
            if one.first < ends.get(PartitionGeneration(topic, number, one.generation), 0)
        ]
        newest = max(having, default=0)
        base = max(number_begun for number_begun in known.whole if number_begun <= newest)
        by_topic[topic] = [
            StagedRange(source, topic, number, *extent)
            for number, ranges in sorted(partitions.items())
            for extent in _of_partition(
                ranges, base, _cut_by_next(by_partition[topic, number], known.own[number])
            )
        ]
    return by_topic


def _cut_by_next(ends: Mapping[int, int], own: Mapping[int, int]) -> dict[int, int]:
    """The end of each generation of a partition, none behind the start of its next own one."""
    cut_ends = dict(ends)
    for generation in own.keys() & ends.keys():
        for before in [older for older in cut_ends if older < generation]:
            cut_ends[before] = min(cut_ends[before], own[generation])
    return cut_ends


def _of_partition(
    ranges: PartitionRanges, base: int, ends: Mapping[int, int]
) -> list[tuple[int, int, int, int]]:
    """(generation, first, last, record count) of a partition from `base` on, below its ends."""
    wanted = {number: (0, end - 1) for number, end in ends.items() if number >= base and end > 0}
    inside = ranges.bounded(wanted)
    by_generation: dict[int, tuple[int, int, int, int]] = {}
    for one in inside:
        _, first, last, count = by_generation.get(one.generation, (0, one.first, -1, 0))
        extent = min(first, one.first), max(last, one.last)
        by_generation[one.generation] = (one.generation, *extent, count + one.record_count)
    return list(by_generation.values())


@dataclass(frozen=True)
class Moment:
    """A time of the source: how far each topic had come, and its state. `unproven` are topics for
    which it was not noted what rules out that a transaction is restored in part."""

    ends: GenerationEnds
    states: Mapping[str, TopicState]
    unproven: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RestoreRequest:
    """A request for a restore: the topics of the cluster `source` that one of the patterns matches,
    named by a policy (as in a flow), to the cluster `target`, which may be the same one.

    `words` distinguish cuts, so that a repeated restore is recognized; `start_over` begins a new
    one all the same. `compacted` restores only the last value of each key. `extras` are some of
    `extras.ALL`, as of `until_ms` (None: now); neither distinguishes restores.
    """

    source: str
    target: str
    topics: tuple[str, ...] = (".*",)
    rename: str = "identity"
    words: Mapping[str, Any] = field(default_factory=dict)
    compacted: bool = False
    start_over: bool = False
    extras: frozenset[str] = frozenset()
    until_ms: int | None = None

    @property
    def request(self) -> dict[str, Any]:
        """What identifies the same restore."""
        return {
            "topics": list(self.topics),
            "rename": self.rename,
            "compacted": self.compacted,
            **self.words,
        }
