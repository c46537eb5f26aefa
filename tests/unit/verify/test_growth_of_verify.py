"""What a comparison plans and tells grows no faster than partitions and their ranges."""

from collections.abc import Callable

import pytest

from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import GenerationOffset
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.verify.not_compared import (
    NotCompared,
    PartitionFacts,
    maybe_not_staged,
    not_mapped,
    reasons,
)
from mirrorlake.verify.outcome import Outcome
from mirrorlake.verify.plan import RANGE_OFFSETS, cut, sampled
from tests.support.growth import LINEAR, SORTED, Made, growth


def staged(size: int) -> StageIndex:
    index = StageIndex()
    index.apply([("f", [StagedRange("east", f"t{n}", 0, 0, 0, 9, 10) for n in range(size)])], (), 1)
    return index


def facts(size: int) -> list[PartitionFacts]:
    """Partitions of which half is mapped, and some is left out; the source has more."""
    topics = staged(size).topics("east")
    return [
        PartitionFacts(
            (f"t{n}", 0),
            GenerationOffset(0, 5),
            staged=topics[f"t{n}"][0],
            left_out=lambda _: [(7, 8)],
            landed=GenerationOffset(0, 10),
            source=(0, 20),
        )
        for n in range(size)
    ]


def stretches(size: int) -> list[NotCompared]:
    return [NotCompared(f"t{n}", n % 3, 0, 5, 9, "not_mapped") for n in range(size)]


def each_with_an_incident(size: int) -> Callable[[], object]:
    incidents = [
        {"kind": "target_refused", "topic": each.topic, "partition": each.partition}
        | {"generation": 0, "open": True}
        for each in stretches(size)
    ]
    found = list(reasons(stretches(3), incidents[:3], lambda _: False))
    assert [why for _, why in found] == [("refused", "incident target_refused is open")] * 3
    return lambda: list(reasons(stretches(size), incidents, lambda _: False))


def ranges(size: int) -> list[tuple[int, int]]:
    return [(n * RANGE_OFFSETS, (n + 1) * RANGE_OFFSETS - 1) for n in range(size)]


def added(size: int) -> None:
    outcome = Outcome()
    place = {"flow": "a->b", "topic": "t", "partition": 0, "byte_count": 1, "differences": []}
    for first, last in ranges(size):
        row = {**place, "first_offset": first, "last_offset": last, "verdict": "proven"}
        outcome.add({**row, "stage_count": 10, "untold_differences": 0}, {})


PLANS: dict[str, Made] = {
    "what was not compared": lambda size: (
        lambda: [(not_mapped(one), maybe_not_staged(one)) for one in facts(size)]
    ),
    "why it was not": each_with_an_incident,
    "what is left to compare": lambda size: (
        lambda: cut(OffsetRanges(ranges(size)[::2]).lacking(0, 2 * size * RANGE_OFFSETS))
    ),
    "a sample": lambda size: lambda: sampled(ranges(size), "t-0", 0.5),
    "what came of it": lambda size: lambda: added(size),
}


@pytest.mark.parametrize("case", PLANS)
def test_it_grows_as_partitions_and_ranges(case: str) -> None:
    assert growth(PLANS[case]) < (SORTED if case == "a sample" else LINEAR)
