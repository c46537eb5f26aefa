"""Source records that a flow goes on without, and never brings to its target: those in front of its
`start`, those that were given up by an operator's decision, and parked ones that wait. A group that
has not read them misses them at the target."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Set
from dataclasses import replace

from mirrorlake.groups.running_flow import RunningFlow
from mirrorlake.lake.decisions import decided_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.other_logs import source_generations
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.starts import starts_of
from mirrorlake.lake.targets import LivingMirror, living_targets
from mirrorlake.lake.translate import translate_all
from mirrorlake.offsets.positions import (
    PartitionGeneration,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)
from mirrorlake.offsets.ranges import NO_END, OffsetRanges

#: Why a position is not exact whose next record is one of these.
PASSED_OVER = (
    "the flow goes on without the next record at or behind this offset, which lies in front of its "
    "start, was given up by a decision, or is parked; this is the position of the next one"
)


_NONE = OffsetRanges()
PassedOver = Mapping[TopicAndPartition, OffsetRanges]
"""The offsets of such records in the logs that the source has now."""


class RunningPassedOver:
    """What a running flow goes on without, read whenever that may have changed. For one thread."""

    def __init__(self, flow: str, lake: Lake, running: RunningFlow) -> None:
        self._flow, self._lake, self._running = flow, lake, running
        self._read_by: int | None = None
        self._passed: PassedOver = {}
        self._changed: set[TopicAndPartition] = set()

    def changed(self) -> Set[TopicAndPartition]:
        """Partitions with others than at the last `seen`: earlier translations lack them."""
        revision = self._running.passes_over()
        if revision != self._read_by:
            passed = passed_over_of(self._lake.now, self._flow)
            self._changed |= {
                key
                for key in passed.keys() | self._passed.keys()
                if passed.get(key) != self._passed.get(key)
            }
            self._passed, self._read_by = passed, revision
        return self._changed

    def seen(self, but: Collection[TopicAndPartition] = ()) -> None:
        """What is translated from now on counts them all, `but` for that of some partitions."""
        self._changed = self._changed & {*but}

    def counted(
        self, translated: Mapping[TopicPartitionOffset, Translated]
    ) -> dict[TopicPartitionOffset, Translated]:
        """`with_passed_over`, by what was read last."""
        return _counted(translated, self._passed)


def with_passed_over(
    lake: Reader, flow: str, translated: Mapping[TopicPartitionOffset, Translated]
) -> dict[TopicPartitionOffset, Translated]:
    """Count, as `gone`, the records at or behind source positions that the flow goes on without."""
    return _counted(translated, passed_over_of(lake, flow) if translated else {})


def _counted(
    translated: Mapping[TopicPartitionOffset, Translated], passed: PassedOver
) -> dict[TopicPartitionOffset, Translated]:
    return {
        key: replace(position, gone=position.gone + passed[key[:2]].count(key[2], NO_END))
        if key[:2] in passed
        else position
        for key, position in translated.items()
    }


def records_passed_over(
    lake: Reader, flow: str, translated: Mapping[TopicPartitionOffset, Translated]
) -> set[TopicPartitionOffset]:
    """Those of some source positions whose next record is one that the flow goes on without: it has
    no record in between, so that both lead to the same offset."""
    passed = passed_over_of(lake, flow) if translated else {}
    firsts: dict[TopicPartitionOffset, TopicPartitionOffset] = {}
    for topic, partition, offset in translated:
        behind = passed.get((topic, partition), _NONE).within(offset, NO_END)
        if behind:
            firsts[topic, partition, offset] = topic, partition, behind[0][0]
    others = translate_all(lake, flow, firsts.values() - translated.keys()) if firsts else {}
    there = {**others, **translated}
    return {
        key
        for key, first in firsts.items()
        if key == first or (first in there and there[first].offset == translated[key].offset)
    }


def passed_over_at_target(
    lake: Reader, flow: str, partitions: Set[TopicAndPartition]
) -> dict[TopicAndPartition, list[tuple[int, int]]]:
    """By source partition, where at the target such records would be: the offset of the next record
    that the flow has brought, and how many there are."""
    passed = passed_over_of(lake, flow)
    counts = {
        (*key, first): last - first + 1
        for key in partitions & passed.keys()
        for first, last in passed[key]
    }
    there: dict[TopicAndPartition, list[tuple[int, int]]] = defaultdict(list)
    for place, translated in translate_all(lake, flow, counts).items():
        there[place[:2]].append((translated.offset, counts[place]))
    return there


def passed_over_of(lake: Reader, flow: str) -> PassedOver:
    """The records that a flow goes on without."""
    passed = _passed_over(lake, flow)
    known = source_generations(lake, flow) if passed else None
    return {
        place.topic_partition: offsets
        for place, offsets in passed.items()
        if known is not None and place.generation == known.newest(place.topic_partition)
    }


def _passed_over(lake: Reader, flow: str) -> Mapping[PartitionGeneration, OffsetRanges]:
    """The offsets of such records, as far as they are of the living target topics."""
    passed: dict[PartitionGeneration, OffsetRanges] = defaultdict(OffsetRanges)
    for place, first in starts_of(lake, flow).items():
        passed[place].add([(0, first - 1)] if first else [])
    living = living_targets(lake, flow)

    def mirror(topic: str) -> LivingMirror:
        noted = living.get(topic)
        names = (None, None) if noted is None else (noted.target_topic, noted.generation)
        return LivingMirror(*names)

    decided = decided_of(lake.query_rows("mirror_incidents", flow=flow), mirror)
    for place, ranges in [*decided.skipped.items(), *decided.trimmed.items()]:
        passed[place].add(ranges)
    for row in lake.query_rows("parked_waiting", flow=flow):
        passed[PartitionGeneration.from_row(row)].add([(row["offset"], row["offset"])])
    return passed
