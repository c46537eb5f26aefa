"""What must stay in the stage for a flow: whatever it may have produced without a row in the map,
and nothing else."""

import pytest

from mirrorlake.forget.still_needed import FlowPositions, StillNeeded, still_needed
from mirrorlake.offsets.partition_ranges import PartitionRanges, StagedRange
from mirrorlake.offsets.positions import GenerationOffset

KEY = ("orders", 0)
FLOW = "east->west"


def staged(*generations: tuple[int, int]) -> dict[str, dict[int, PartitionRanges]]:
    """A partition with 10 records from offset 0 on, and so on, by (generation, end)."""
    ranges = PartitionRanges()
    for file, (generation, end) in enumerate(generations):
        ranges.add(file, StagedRange("east", *KEY, generation, 0, end - 1, end))
    return {"orders": {0: ranges}}


def found(
    floor: tuple[int, int] | None,
    committed: dict[tuple[str, int], GenerationOffset] | None,
    *generations: tuple[int, int],
    mirrored: bool = True,
) -> list[tuple[int, int, int]]:
    known = FlowPositions(
        FLOW, {KEY: floor} if floor else {}, committed, ["orders"] if mirrored else []
    )
    items = list(still_needed(known, staged(*generations)))
    assert all(item[:3] == (FLOW, *KEY) for item in items) and all(
        isinstance(item, StillNeeded) for item in items
    )
    return [item[3:] for item in items]


def test_while_a_flow_runs_all_behind_its_map_stays() -> None:
    assert found((0, 40), None, (0, 100)) == [(0, 40, 100)]
    assert found((0, 100), None, (0, 100)) == []
    assert found(None, None, (0, 100)) == [(0, 0, 100)], "it may have begun"
    assert found(None, None, (0, 100), mirrored=False) == [], "it does not mirror the topic"


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (None, []),
        (GenerationOffset(0, 40), []),
        (GenerationOffset(0, 30), []),
        (GenerationOffset(0, 55), [(0, 40, 55)]),
    ],
)
def test_of_one_that_nobody_runs_only_what_the_target_has_stays(
    position: GenerationOffset | None, expected: list[tuple[int, int, int]]
) -> None:
    assert found((0, 40), {} if position is None else {KEY: position}, (0, 100)) == expected


def test_generations() -> None:
    assert found((1, 40), None, (0, 100), (1, 50)) == [(1, 40, 50)], (
        "the older one is mapped to its end"
    )
    assert found((0, 40), None, (0, 100), (1, 50)) == [(0, 40, 100), (1, 0, 50)]
    assert found((0, 100), {KEY: GenerationOffset(1, 7)}, (0, 100), (1, 50)) == [(1, 0, 7)]
    assert found((1, 40), {KEY: GenerationOffset(0, 100)}, (0, 100), (1, 50)) == []
