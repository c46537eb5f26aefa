"""What came of a comparison, added up."""

import pytest

from mirrorlake.verify import outcome
from mirrorlake.verify.not_compared import NotCompared
from mirrorlake.verify.outcome import Outcome


def row(first: int, verdict: str = "proven", untold: int = 0) -> dict[str, object]:
    """A range of ten records."""
    place = {"flow": "a->b", "topic": "t", "partition": 0, "first_offset": first}
    return {
        **place,
        "verdict": verdict,
        "stage_count": 10,
        "byte_count": 1,
        "differences": [],
        "untold_differences": untold,
    }


def test_what_compaction_took_is_not_proven() -> None:
    found = Outcome()
    found.add(row(0), {})
    found.add(row(10, "superseded"), {"superseded": 7})
    found.add(row(20, "missing_at_target"), {"superseded": 2})
    assert (found.records, found.proven, dict(found.excused)) == (30, 10 + 3, {"superseded": 9})


def test_what_was_proven_before_is_counted_once_however_long_it_is_watched() -> None:
    found = Outcome()
    for count in (10, 40):  # thirty more were proven by the first turn
        found.note_proven_before("a->b", count)
        found.note_proven_before("b->a", 5)
    assert found.proven_before == 15


def test_what_is_not_kept_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome, "MOST_ROWS", 2)
    found = Outcome()
    for first in range(0, 50, 10):
        found.add(row(first, untold=3), {})
    assert [one["first_offset"] for one in found.rows] == [30, 40]
    assert (found.dropped_ranges, found.unlisted_differences) == (3, 15)


def test_what_was_not_compared_is_listed_in_order_whether_or_not_it_is_on_its_way() -> None:
    found = Outcome()
    found.held_up["a->b"] = [
        NotCompared("t", 1, 0, first=5, last=9, reason="paused"),
        NotCompared("t", 0, 1, first=0, last=None, reason="no_answer"),
    ]
    found.on_the_way["a->b"] = [NotCompared("t", 0, 0, first=3, last=4, reason="not_mapped")]
    told = [
        (one["partition"], one["generation"], one["first_offset"], one["reason"])
        for one in found.not_compared
    ]
    assert told == [(0, 0, 3, "not_mapped"), (0, 1, 0, "no_answer"), (1, 0, 5, "paused")]
