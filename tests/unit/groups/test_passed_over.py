"""Records that a flow goes on without: a group that has not read them is told how many."""

from typing import Any

from mirrorlake.groups.passed_over import records_passed_over, with_passed_over
from mirrorlake.lake.decisions import FOUND_NONE, READ_AGAIN
from mirrorlake.offsets.positions import Translated
from mirrorlake.testing import MemoryLake
from tests.support.lake_rows import FLOW, ago

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


def test_positions_whose_next_record_is_one_of_these() -> None:
    start = {"flow": FLOW, **PLACE, "first_offset": 100}
    skipped = incident(110, 112, resolution="skip")
    parked = {**PLACE, "offset": 140}
    tables = lake(starts_of=[start], mirror_incidents=[skipped], parked_waiting=[parked])
    asked = [("orders", 0, at) for at in (99, 100, 109, 110, 112, 113, 140, 141)]
    asked.append(("others", 0, 5))
    assert sorted(at for _, _, at in records_passed_over(tables, FLOW, asked)) == [
        99,
        110,
        112,
        140,
    ]
    assert records_passed_over(lake(), FLOW, asked) == set()
