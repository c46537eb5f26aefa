"""Source records that a flow goes on without, and never brings to its target: those in front of its
`start`, those that were given up by an operator's decision, and parked ones that wait. A group that
has not read them misses them at the target."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from mirrorlake.lake.incidents import ACCEPT
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.source_generations import source_generations
from mirrorlake.lake.starts import starts_of
from mirrorlake.lake.targets import LivingMirror, living_targets
from mirrorlake.offsets.positions import PartitionGeneration, TopicPartitionOffset, Translated
from mirrorlake.offsets.ranges import NO_END, OffsetRanges

#: Decisions by which records are given up.
_GIVEN_UP = frozenset(
    {("target_refused", "skip"), ("target_lost", ACCEPT), ("stage_trimmed", "continue")}
)


def with_passed_over(
    lake: Reader, flow: str, translated: Mapping[TopicPartitionOffset, Translated]
) -> dict[TopicPartitionOffset, Translated]:
    """Count, as `gone`, the records at or behind source positions that the flow goes on without."""
    passed = _passed_over(lake, flow) if translated else {}
    if not passed:
        return dict(translated)
    known = source_generations(lake, flow)

    def count(topic: str, partition: int, offset: int) -> int:
        place = PartitionGeneration(topic, partition, known.newest((topic, partition)))
        return passed[place].count(offset, NO_END) if place in passed else 0

    return {
        key: replace(position, gone=position.gone + count(*key))
        for key, position in translated.items()
    }


def _passed_over(lake: Reader, flow: str) -> Mapping[PartitionGeneration, OffsetRanges]:
    """The offsets of such records, as far as they are of the living target topics."""
    passed: dict[PartitionGeneration, OffsetRanges] = defaultdict(OffsetRanges)
    for place, first in starts_of(lake, flow).items():
        passed[place].add([(0, first - 1)] if first else [])
    living = living_targets(lake, flow)
    for row in lake.query_rows("mirror_incidents", flow=flow):
        noted = living.get(row["topic"])
        names = (None, None) if noted is None else (noted.target_topic, noted.generation)
        given_up = (row["kind"], row["resolution"]) in _GIVEN_UP and row["first_offset"] is not None
        if given_up and LivingMirror(*names).is_of(row):
            offsets = (row["first_offset"], row["last_offset"])
            passed[PartitionGeneration.from_row(row)].add([offsets])
    for row in lake.query_rows("parked_waiting", flow=flow):
        passed[PartitionGeneration.from_row(row)].add([(row["offset"], row["offset"])])
    return passed
