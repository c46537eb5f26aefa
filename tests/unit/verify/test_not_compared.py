"""What a comparison did not see of a partition: which offsets, and why."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from mirrorlake.offsets.partition_ranges import PartitionRanges, StagedRange
from mirrorlake.offsets.positions import GenerationOffset
from mirrorlake.offsets.ranges import Extent
from mirrorlake.verify.not_compared import (
    NotCompared,
    PartitionFacts,
    maybe_not_staged,
    maybe_skipped,
    not_mapped,
    on_its_way,
    reason,
    removed_head,
)


def ranges(*items: tuple[int, int, int]) -> PartitionRanges:
    """Staged ranges: generation, first, last."""
    found = PartitionRanges()
    for file, (generation, first, last) in enumerate(items):
        found.add(file, StagedRange("east", "t", 0, generation, first, last, last - first + 1))
    return found


def known(
    compared: tuple[int, int], staged: PartitionRanges | None, **facts: Any
) -> PartitionFacts:
    left_out: Iterable[Extent] = facts.pop("left_out", ())
    landed = GenerationOffset(*facts.pop("landed", (0, 0)))
    source = facts.pop("source", (0, 0))
    return PartitionFacts(
        ("t", 0),
        GenerationOffset(*compared),
        staged=staged,
        left_out=lambda _generation: left_out,
        landed=landed,
        source=source,
        **facts,
    )


def extents(found: list[NotCompared]) -> list[tuple[int, int, int | None]]:
    return [(item.generation, item.first, item.last) for item in found]


def test_what_lies_behind_the_position_of_any_generation() -> None:
    staged = ranges((0, 0, 9), (1, 0, 4), (1, 5, 9), (2, 0, 2))
    assert extents(not_mapped(known((0, 10), staged))) == [(1, 0, 9), (2, 0, 2)]
    assert extents(not_mapped(known((1, 3), staged))) == [(1, 3, 9), (2, 0, 2)]
    assert extents(not_mapped(known((2, 3), staged))) == []
    assert not_mapped(known((0, 0), None)) == []


def test_what_was_left_out_on_purpose_is_no_gap() -> None:
    staged = ranges((0, 0, 9), (0, 20, 29))
    assert extents(not_mapped(known((0, 5), staged, left_out=[(7, 22)]))) == [
        (0, 5, 6),
        (0, 23, 29),
    ]
    assert extents(not_mapped(known((0, 5), staged, left_out=[(0, 40)]))) == []


@pytest.mark.parametrize(
    ("landed", "source", "same", "told"),
    [
        ((0, 10), (0, 10), True, None),
        ((0, 10), (0, 12), True, (0, 10, 11)),
        ((0, 10), (15, 20), True, (0, 15, 19)),
        ((1, 10), (0, 3), False, (1, 0, 2)),
        ((0, 10), (10, 10), False, None),
        ((0, 7), None, True, (0, 7, None)),
    ],
)
def test_what_may_not_be_staged(
    landed: tuple[int, int],
    source: tuple[int, int] | None,
    same: bool,
    told: tuple[int, int, int | None] | None,
) -> None:
    """A topic that was made again is another one from its start; what no leader tells is not
    known."""
    found = maybe_not_staged(known((0, 0), None, landed=landed, source=source, same=same))
    assert (None if found is None else extents([found])[0]) == told


def test_why() -> None:
    item = NotCompared("t", 0, 0, first=5, last=9, reason="not_mapped")

    def row(
        kind: str,
        topic: str | None = "t",
        partition: int | None = 0,
        is_open: bool = True,
        generation: int = 0,
    ) -> dict[str, Any]:
        where = {"topic": topic, "partition": partition, "generation": generation}
        return {"kind": kind, **where, "open": is_open}

    assert reason(item, [], False) is None
    assert (
        reason(item, [row("target_refused", partition=1), row("target_refused", "other")], False)
        is None
    )
    assert reason(item, [row("content_differs"), row("control_acls", None, None)], False) is None
    assert reason(item, [row("target_refused")], False) == (
        "refused",
        "incident target_refused is open",
    )
    assert reason(item, [row("target_recreated", partition=None)], False) == (
        "refused",
        "incident target_recreated is open",
    )
    landing = row("landing_failed", None, None)
    assert reason(item, [landing], False) == ("not_mapped", "incident landing_failed is open")
    assert reason(item, [landing], True) == ("paused", "the flow pauses the topic")
    stopped = row("source_truncated", is_open=False)
    assert reason(item, [row("source_truncated", is_open=False, generation=1)], False) is None
    assert reason(item, [stopped], True) == ("stopped", "decided of source_truncated")
    assert [on_its_way(item, runs).reason for runs in (True, False)] == ["in_flight", "not_mapped"]
    unknown = replace(item, reason="no_answer", detail="of its log")
    assert on_its_way(unknown, runs=True).reason == "in_flight"
    assert on_its_way(unknown, runs=False) == unknown


@pytest.mark.parametrize(
    ("facts", "head"),
    [
        ({}, (2, 9)),
        ({"begins": 5}, (5, 9)),
        ({"begins": 10}, None),
        ({"left_out": [(2, 3)], "passed_over": [(4, 6)]}, (7, 9)),
        ({"passed_over": [(0, 9)]}, None),
        ({"source": (10, 20)}, None),
        ({"source": (2, 6)}, (2, 5)),
        ({"source": None}, None),
        ({"same": False}, None),
        ({"first": None}, None),
    ],
)
def test_a_head_of_the_log_that_was_never_landed(
    facts: dict[str, Any], head: tuple[int, int] | None
) -> None:
    """What lies in front of all that was landed, and is noted nowhere as left out."""
    facts = {"source": (2, 20), "first": 10, "landed": (1, 20), **facts}
    found = maybe_skipped(known((1, 20), ranges((1, 10, 19)), **facts))
    assert [(one.first, one.last) for one in found] == ([] if head is None else [head])
    assert all((one.generation, one.reason) == (1, "not_staged") for one in found)


@pytest.mark.parametrize(
    ("facts", "asked", "mapped", "heads"),
    [
        ({}, (2, 9), [], [(2, 9)]),
        ({}, (2, 9), [(0, 19)], []),
        ({}, (2, 9), [(0, 3), (10, 19)], [(4, 9)]),
        ({}, (2, 9), [(2, 2), (4, 5), (9, 9)], [(6, 8), (3, 3)]),
        ({"removed": [(0, 5)]}, (2, 5), [(0, 19)], [(6, 9)]),
        ({"removed": [(4, 5)], "passed_over": [(2, 3), (6, 9)]}, (4, 5), [(4, 4)], [(5, 5)]),
        ({"passed_over": [(0, 9)]}, None, [], []),
        ({"begins": 10}, None, [], []),
        ({"source": (10, 20)}, None, [], []),
        ({"removed": []}, None, [], [(2, 9)]),
    ],
)
def test_what_was_removed_from_the_stage_has_to_be_mapped(
    facts: dict[str, Any], asked: Extent | None, mapped: list[Extent], heads: list[Extent]
) -> None:
    """That `maintain` has deleted a record is no sign that the flow has it."""
    facts = {"source": (2, 20), "first": 10, "landed": (0, 20), "removed": [(0, 9)], **facts}
    here = known((0, 20), ranges((0, 10, 19)), **facts)
    assert removed_head(here) == asked
    found = [(one.first, one.last) for one in maybe_skipped(here, mapped)]
    assert found == heads
