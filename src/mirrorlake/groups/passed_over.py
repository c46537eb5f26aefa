"""Source records that a flow goes on without, and never brings to its target: those in front of its
`start`, those that were given up by an operator's decision, and parked ones that wait. A group that
has not read them misses them at the target."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from mirrorlake.lake.decisions import decided_of
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.source_generations import source_generations
from mirrorlake.lake.starts import starts_of
from mirrorlake.lake.targets import LivingMirror, living_targets
from mirrorlake.offsets.positions import (
    PartitionGeneration,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)
from mirrorlake.offsets.ranges import NO_END, OffsetRanges

#: Why a position is not exact whose next record is one of these.
PASSED_OVER = (
    "the flow goes on without the record at this offset, which lies in front of its start, was "
    "given up by a decision, or is parked; this is the position of the next one"
)


def with_passed_over(
    lake: Reader, flow: str, translated: Mapping[TopicPartitionOffset, Translated]
) -> dict[TopicPartitionOffset, Translated]:
    """Count, as `gone`, the records at or behind source positions that the flow goes on without."""
    passed = _of_newest_logs(lake, flow) if translated else {}
    nothing = OffsetRanges()
    return {
        (topic, partition, offset): replace(
            position,
            gone=position.gone + passed.get((topic, partition), nothing).count(offset, NO_END),
        )
        for (topic, partition, offset), position in translated.items()
    }


def records_passed_over(
    lake: Reader, flow: str, positions: Collection[TopicPartitionOffset]
) -> set[TopicPartitionOffset]:
    """Those of some source positions whose next record is one that the flow goes on without."""
    passed = _of_newest_logs(lake, flow) if positions else {}
    return {
        (topic, partition, offset)
        for topic, partition, offset in positions
        if offset in passed.get((topic, partition), ())
    }


def _of_newest_logs(lake: Reader, flow: str) -> Mapping[TopicAndPartition, OffsetRanges]:
    """The offsets of such records in the logs that the source has now."""
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
