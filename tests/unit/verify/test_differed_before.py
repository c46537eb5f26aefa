"""What differed when it was compared, and has left the stage since, is compared no more, and named:
its proof is still missing, and its incident stays open. What the stage has lost beyond what was
noted to leave it is compared."""

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.table_upkeep import Removal, note_removals
from mirrorlake.verify.coverage import find_not_compared
from mirrorlake.verify.not_compared import DIFFERED
from mirrorlake.verify.plan import RANGE_OFFSETS, Choice, choose
from tests.support.lake_rows import FLOW, append, no_session, opened, run_row, staged, write_file
from tests.support.verify_scopes import scope_of


def audit(first: int, last: int, verdict: str) -> dict[str, Any]:
    row: dict[str, Any] = {"flow": FLOW, "topic": "orders", "partition": 0, "generation": 0}
    row |= {"first_offset": first, "last_offset": last, "stage_count": last - first + 1}
    row |= {"target_topic": "east.orders", "target_generation": 0, "target_last_offset": 19}
    return row | {"verdict": verdict, "audited_at": datetime.now(timezone.utc)}


#: `make test` has the first four.
CASES: list[Any] = [
    (8, 0, (None, None), [], [(6, 9)]),
    (0, 0, (None, None), [], [(6, 9)]),
    (8, 8, (None, None), [(6, 7)], [(8, 9)]),
    (10, 10, (None, None), [(6, 9)], []),
    (20, 20, (None, None), [(6, 9)], []),
    (20, 20, (7, 12), [(7, 9)], []),
    (20, 20, (10, None), [], []),
]


@pytest.mark.parametrize(
    ("removed", "below", "bounds", "told", "again"),
    [
        *CASES[:4],
        *(pytest.param(*case, marks=pytest.mark.wide("test_it_is_named")) for case in CASES[4:]),
    ],
    ids=[
        "killed before it left",
        "nothing left",
        "half of it",
        "all of it",
        "the whole stage",
        "asked in part",
        "not asked",
    ],
)
def test_it_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    removed: int,
    below: int,
    bounds: tuple[int | None, int | None],
    told: list[tuple[int, int]],
    again: list[tuple[int, int]],
) -> None:
    file = write_file(tmp_path, flows={FLOW: {"delivery": "at_least_once"}})
    lake, topology = opened(no_session, file)
    if below < 20:
        append(lake, "records", staged(range(below, 20)))
    note_removals(lake, [Removal("east", "orders", 0, 0, 0, removed)] if removed else [])
    append(lake, "offset_map", [run_row(0, 19)])
    audits = [audit(0, 5, "proven"), audit(6, 9, "content"), audit(10, 19, "proven")]
    lake.append("audits", rows_of("audits", audits))
    scope, choice = scope_of(lake, topology, monkeypatch), Choice(*bounds)
    with StageFiles(lake.reader).reading() as index:
        partitions = scope.partitions(index)
        held, _ = find_not_compared(scope, partitions, index, choice.bounds)
    found = [extent for one in choose(scope, partitions, choice) for extent in one.extents]
    assert found == again
    assert [(one.first, one.last) for one in held if one.reason == DIFFERED] == told
    assert all("content" in one.detail for one in held)


@pytest.mark.parametrize("again", [False, True])
def test_no_sample_leaves_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """Else its answer is that nothing differs."""
    end, differs = 40 * RANGE_OFFSETS, (17 * RANGE_OFFSETS + 6, 17 * RANGE_OFFSETS + 9)
    file = write_file(tmp_path, flows={FLOW: {"delivery": "at_least_once"}})
    lake, topology = opened(no_session, file)
    append(lake, "records", staged([0, end - 1]))
    append(lake, "offset_map", [run_row(0, end - 1)])
    lake.append("audits", rows_of("audits", [audit(*differs, "content")]))
    scope, choice = scope_of(lake, topology, monkeypatch), Choice(sample=0.01, again=again)
    with StageFiles(lake.reader).reading() as index:
        partitions = scope.partitions(index)
    extents = [extent for one in choose(scope, partitions, choice) for extent in one.extents]
    assert any(first <= differs[0] and differs[1] <= last for first, last in extents)
    assert len(extents) < 10 and extents == sorted(extents)


@pytest.mark.parametrize(
    ("removed", "forgotten", "there", "first"),
    [
        ((0, 8), [], range(8, 20), 8),
        ((0, 8), [], range(12, 20), 8),
        ((4, 8), [], range(8, 20), 0),
        ((0, 8), [(8, 9)], range(12, 20), 10),
        ((0, 8), [(8, 11)], range(12, 20), 12),
        ((0, 8), [], (), 8),
        ((0, 20), [], (), None),
    ],
    ids=["none", "some", "in front of it", "beside forgotten ones", "forgotten", "all", "removed"],
)
def test_what_the_stage_has_lost_behind_what_was_removed_is_compared(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    removed: tuple[int, int],
    forgotten: list[tuple[int, int]],
    there: Sequence[int],
    first: int | None,
) -> None:
    """The source may have trimmed it too: nothing else would say that it is missing."""
    file = write_file(tmp_path, flows={FLOW: {"delivery": "at_least_once"}})
    lake, topology = opened(no_session, file)
    append(lake, "records", staged(there))
    note_removals(lake, [Removal("east", "orders", 0, 0, *removed)])
    rows = [
        {"source_cluster": "east", "topic": "orders", "partition": 0, "generation": 0}
        | {"first_offset": low, "last_offset": high, "record_count": 1, "forget_id": "f"}
        | {"noted_at": datetime.now(timezone.utc)}
        for low, high in forgotten
    ]
    lake.append("forgotten", rows_of("forgotten", rows))
    append(lake, "offset_map", [run_row(0, 19)])
    scope = scope_of(lake, topology, monkeypatch)
    with StageFiles(lake.reader).reading() as index:
        partitions = scope.partitions(index)
    extents = [extent for one in choose(scope, partitions, Choice()) for extent in one.extents]
    assert extents == ([] if first is None else [(first, 19)])
