"""What `maintain` has deleted from the stage, and the source still has, is named where neither the
map nor a decision has it: a flow of an earlier version went on behind it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.kafka.values import Row
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.table_upkeep import Removal, note_removals
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.verify import coverage
from mirrorlake.verify.coverage import find_not_compared
from mirrorlake.verify.plan import Choice
from tests.support.lake_rows import FLOW, append, no_session, opened, run_row, staged, write_file
from tests.support.verify_scopes import scope_of

NOW = datetime.now(timezone.utc)
PLACE = {"flow": FLOW, "topic": "orders", "partition": 0}


def first_rows(_connections: object, _alias: str, asked: Mapping[TopicAndPartition, int]) -> Any:
    """The source has a record at each offset but 3 and 4, which are transaction markers."""
    ends = {key: 5 if offset in (3, 4) else offset for key, offset in asked.items()}
    return {key: Row(offset, 0, None, b"v") for key, offset in ends.items() if offset < 20}


def decided(first: int, last: int) -> dict[str, Any]:
    row = {"kind": "stage_trimmed", "resolution": "continue", "at": NOW, "resolved_at": NOW}
    place = {"first_offset": first, "last_offset": last, "generation": 0}
    return {**PLACE, **row, **place, "target_topic": "east.orders", "target_generation": 0}


def target(number: int, hours: int = 0, begins: str = "stage") -> dict[str, Any]:
    started_at = NOW + timedelta(hours=hours)
    row = {"topic": "orders", "topic_id": f"id {number}", "begins": begins}
    row |= {"started_at": started_at}
    return {"flow": FLOW, "target_topic": "east.orders", "target_generation": number, **row}


#: `make test` has the first six.
CASES: list[Any] = [
    ([(10, 19)], {}, [(0, 9)]),
    ([(0, 19)], {}, []),
    ([(0, 5), (10, 19)], {}, [(6, 9)]),
    ([(0, 2), (5, 6), (8, 19)], {}, [(7, 7)]),
    ([(10, 19)], {"incidents": [decided(0, 9)]}, []),
    ([(10, 19)], {"incidents": [decided(0, 4)]}, [(5, 9)]),
    ([(10, 19)], {"starts": [10]}, []),
    ([(10, 19)], {"target_generations": [target(0), target(1, hours=1)]}, []),
    ([(5, 19)], {"target_generations": [target(0), target(1)]}, []),
    ([], {"target_generations": [target(0), target(1, hours=1)]}, []),
    ([], {"target_generations": [target(0), target(1)]}, [(0, 9)]),
    ([(10, 19)], {"target_generations": [target(0), target(1, 1, "end")]}, [(0, 9)]),
    ([(0, 9, 0), (10, 19)], {"target_generations": [target(0), target(1, 1, "end")]}, []),
]


@pytest.mark.parametrize(
    ("mapped", "rows", "found"),
    [
        *CASES[:6],
        *(pytest.param(*case, marks=pytest.mark.wide("test_it_is_named")) for case in CASES[6:]),
    ],
    ids=[
        *(
            "all",
            "none",
            "a hole",
            "one behind a longer hole without a record",
            "decided",
            "decided in part",
            "in front of it",
        ),
        *("a target that began later", "a target that has more since", "nothing mapped, later"),
        *("nothing mapped, before", "a target that goes on", "the one before it had them"),
    ],
)
def test_it_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mapped: Iterable[tuple[int, ...]],
    rows: Mapping[str, Sequence[Any]],
    found: list[tuple[int, int]],
) -> None:
    file = write_file(tmp_path, flows={FLOW: {"delivery": "at_least_once"}})
    lake, topology = opened(no_session, file)
    append(lake, "records", staged(range(10, 20)))
    note_removals(lake, [Removal("east", "orders", 0, 0, 0, 10)])
    number = len(rows.get("target_generations", [None])) - 1
    for first, last, *other in mapped:
        generation = {"target_generation": other[0] if other else number}
        append(lake, "offset_map", [{**run_row(first, last), **generation}])
    for table, some in rows.items():
        if table == "starts":
            start = {**PLACE, "generation": 0, "asked": "latest", "noted_at": NOW}
            some = [{**start, "first_offset": first} for first in some]
        lake.append(table, rows_of(table, some))
    scope = scope_of(lake, topology, monkeypatch)
    monkeypatch.setattr(coverage, "_first_rows", first_rows)
    with StageFiles(lake.reader).reading() as index:
        held, free = find_not_compared(scope, scope.partitions(index), index, Choice().bounds)
    told = [(one.first, one.last) for one in held if one.reason == "not_staged"]
    coming = [one for one in free if one.reason != "not_mapped"]
    assert (told, coming) == (found, []), "a running flow brings none of it"
