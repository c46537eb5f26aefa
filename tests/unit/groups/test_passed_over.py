"""Records that a flow goes on without: a group that has not read them is told how many."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.errors import ReplicationError
from mirrorlake.groups.checkpoint_plan import trimmed_reason
from mirrorlake.groups.passed_over import records_passed_over, with_passed_over
from mirrorlake.kafka.groups import GroupPositions
from mirrorlake.lake.decisions import FOUND_NONE, READ_AGAIN
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.translate import translate_all
from mirrorlake.offsets.positions import Translated
from mirrorlake.testing import MemoryLake
from tests.support.group_turns import Turn
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    no_session,
    opened,
    parked_row,
    run_row,
    write_file,
)

NO_INCIDENT = {
    "kind": "target_refused",
    "resolution": None,
    "target_topic": None,
    "target_offset": None,
    "open": False,
    "at": ago(1),
}
PLACE = {"topic": "orders", "partition": 0, "generation": 0}


def incident(first: int | None, last: int | None, **others: Any) -> dict[str, Any]:
    offsets = {"first_offset": first, "last_offset": last, "target_generation": 1}
    return {**NO_INCIDENT, **PLACE, **offsets, **others}


def lake(**answers: Any) -> MemoryLake:
    living = {"target_topic": "east.orders", "target_generation": 1, "topic_id": "x", "lives": True}
    nothing: dict[str, Any] = dict.fromkeys(
        ("starts_of", "mirror_incidents", "parked_waiting", "generation_begins"), ()
    )
    known = {"living_targets_of": [{"topic": "orders", **living}]}
    return MemoryLake({**nothing, **known, **answers})


def gone(tables: MemoryLake, *offsets: int) -> list[int]:
    asked = {("orders", 0, at): Translated("east.orders", 0, at, exact=True) for at in offsets}
    there = with_passed_over(tables, FLOW, asked)
    assert list(there) == list(asked) and all(one.exact for one in there.values())
    return [there["orders", 0, at].gone for at in offsets]


def test_what_lies_in_front_of_the_flows_start() -> None:
    start = {"flow": FLOW, **PLACE, "first_offset": 100}
    assert gone(lake(starts_of=[start]), 0, 20, 99, 100, 150) == [100, 80, 1, 0, 0]
    assert gone(lake(), 0, 20) == [0, 0]


def test_what_was_given_up_or_is_parked() -> None:
    decided = [
        incident(10, 12, resolution="skip"),
        incident(30, 31, kind="target_lost", resolution="accept"),
        incident(50, 53, kind="stage_trimmed", resolution="continue", target_generation=None),
        # these were brought, or come still
        incident(60, 61, resolution="retry"),
        incident(70, 71, open=True),
        incident(72, 75, kind="stage_trimmed", resolution=READ_AGAIN, target_generation=None),
        incident(72, 73, kind="stage_trimmed", resolution=FOUND_NONE, target_generation=None),
        incident(None, None, kind="target_lost", resolution="accept"),
        incident(80, 81, resolution="skip", target_generation=0),
    ]
    tables = lake(mirror_incidents=decided, parked_waiting=[{**PLACE, "offset": 40}])
    assert gone(tables, 0, 11, 13, 35, 51, 54) == [10, 9, 7, 5, 3, 0]


def test_of_a_topic_that_was_made_again_only_its_own_counts() -> None:
    begun = {**PLACE, "generation": 1, "partition": None, "first_offset": None, "id": "y"}
    start = {"flow": FLOW, **PLACE, "first_offset": 100}
    assert gone(lake(starts_of=[start], generation_begins=[begun]), 20) == [0]


def test_positions_whose_next_record_is_one_of_these(tmp_path: Path) -> None:
    """Offsets 112 and 140 are parked; those around them are in the map, but for transaction markers
    at 111, 130 and 131."""
    tables, _ = opened(no_session, write_file(tmp_path))
    for first, last in ((100, 110), (113, 129), (132, 139), (141, 150)):
        append(tables, "offset_map", [run_row(first, last)])
    start = {"flow": FLOW, **PLACE, "first_offset": 100, "asked": "latest", "noted_at": ago(99)}
    tables.append("starts", rows_of("starts", [start]))
    parked = [parked_row(at, ago(50)) for at in (112, 140)]
    tables.append("parked", rows_of("parked", parked))
    offsets = (98, 99, 100, 110, 111, 112, 113, 130, 139, 140, 141, 150)
    asked = translate_all(tables.reader, FLOW, [("orders", 0, at) for at in offsets])
    named = records_passed_over(tables.reader, FLOW, asked)
    assert sorted(at for _, _, at in named) == [98, 99, 111, 112, 140]


def test_the_checkpoints_of_a_running_flow_count_them_even_of_a_group_that_does_not_move(
    tmp_path: Path,
) -> None:
    turn = Turn(tmp_path, [("app", "orders", 0), ("app", "orders", 1)])
    turn.lake.answers["parked_waiting"] = [{**PLACE, "offset": at} for at in (4, 12, 13)]
    assert turn.groups.source.checkpoint() == [], "it is not known yet that it has parked any"
    turn.running.passed += 1
    (row,) = turn.groups.source.checkpoint()
    assert (row.partition, row.target_position, row.reason) == (0, 10, trimmed_reason(2))
    assert row.is_exact
    assert turn.groups.source.checkpoint() == []
    turn.lake.answers["parked_waiting"] = [{**PLACE, "offset": 13}]
    turn.running.passed += 1
    assert [one.reason for one in turn.groups.source.checkpoint()] == [trimmed_reason(1)]
    turn.lake.answers["parked_waiting"] = []
    turn.all_stand_at(11)
    assert [one.reason for one in turn.groups.source.checkpoint()] == [trimmed_reason(1), None], (
        "a replay of parked records in another process is noticed when the flow begins anew"
    )
    turn.running.passed += 1
    assert [one.reason for one in turn.groups.source.checkpoint()] == [None]


def test_a_group_that_is_not_reported_counts_them_once_it_is(tmp_path: Path) -> None:
    """Only the turn in which they changed translated positions anew, and its coordinator was away:
    its checkpoint was called exact for as long as it stood there."""
    turn = Turn(tmp_path, [("app", "orders", 0), ("other", "orders", 0)])
    reported = turn.source.positions

    def but_one(groups: Iterable[str]) -> GroupPositions:
        some = reported(group for group in groups if group != "app")
        return GroupPositions(some.positions, {"app": "its coordinator is away"})

    turn.lake.answers["parked_waiting"] = [{**PLACE, "offset": 12}]
    turn.running.passed += 1
    turn.source.positions = but_one  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(ReplicationError, match="its coordinator is away"):
            turn.groups.source.checkpoint()
    turn.source.positions = reported  # type: ignore[method-assign]
    rows = turn.groups.source.checkpoint()
    assert [(row.group_id, row.reason) for row in rows] == [("app", trimmed_reason(1))]
    assert turn.groups.source.checkpoint() == []


def test_those_of_an_earlier_process_are_corrected_by_what_was_decided_since(
    tmp_path: Path,
) -> None:
    turn = Turn(tmp_path, [("app", "orders", 0), ("app", "orders", 1)])
    turn.lake.answers["newest_checkpoints"] = [
        {name: value for name, value in row.items() if name not in ("flow", "read_at")}
        for row in turn.lake.appended["checkpoints"]
    ]
    turn.lake.answers["mirror_incidents"] = [incident(20, 25, resolution="skip")]
    turn.groups = turn.begin()
    rows = turn.groups.source.checkpoint()
    assert [(row.partition, row.reason) for row in rows] == [(0, trimmed_reason(6))]


def test_a_flow_without_positions_of_groups_asks_for_none_of_them(tmp_path: Path) -> None:
    turn = Turn(tmp_path, [])
    turn.running.passed += 1
    assert turn.groups.source.checkpoint() == [] and turn.lake.asked["parked_waiting"] == 0
