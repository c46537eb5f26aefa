"""A difference that an operator knows of is not told again, and hides no other one: of another
mirror, or behind it."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mirrorlake.errors import ContentDiffers
from mirrorlake.lake.incidents import Incident, IncidentKey, Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.targets import note_targets
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.verify.auditor import Auditor
from tests.support.lake_rows import FLOW, no_session, opened, write_file

OLD, MIRROR = "old.orders", "east.orders"


def test_one_that_is_known_hides_none_behind_it(tmp_path: Path) -> None:
    """Each comparison finds the one that is known again, in front of what has come since."""
    lake, _ = opened(no_session, write_file(tmp_path))
    auditor = auditor_of(lake)
    place = {"topic": "orders", "partition": 0, "generation": 0}
    at_target = {"target_topic": MIRROR, "target_generation": 0}

    def told(*firsts: int) -> list[int]:
        differing = [
            {"first_offset": at, "last_offset": at, "kind": "content", "detail": None}
            for at in firsts
        ]
        row = {**place, **at_target, "first_offset": 0, "last_offset": 99}
        auditor._tell(FLOW, [{**row, "differences": differing}])
        return [row["first_offset"] for row in lake.ask_table("open_incidents")]

    def acknowledge() -> None:
        key = IncidentKey(FLOW, "content_differs", "orders", 0)
        Incidents(lake).settle_all([key], "acknowledge")

    assert told(3) == [3]
    acknowledge()
    assert told(3) == []
    assert told(3, 50) == [50] == told(3, 50)
    acknowledge()
    assert told(3, 50) == []


def auditor_of(lake: Lake) -> Auditor:
    deployment: Any = SimpleNamespace(lake=lake)
    return Auditor(deployment, lambda _: None, threading.Event())  # type: ignore[arg-type,return-value]


def test_what_is_known_of_one_mirror_hides_nothing_of_another_one(tmp_path: Path) -> None:
    """Whose generations have the same numbers. Where no name was noted it is of the first one."""
    lake, _ = opened(no_session, write_file(tmp_path))
    auditor = auditor_of(lake)
    incidents = Incidents(lake)
    for name in (OLD, MIRROR):
        note_targets(lake, FLOW, {("orders", name): NotedTarget(0, f"id of {name}")})
    found = {"first_offset": 3, "last_offset": 4}

    def told(name: str) -> list[str]:
        """The mirrors of which a difference is open, once one was found in this one."""
        place = {"topic": "orders", "partition": 0, "generation": 0}
        differing = [{**found, "kind": "missing_at_target", "detail": None}]
        at_target = {"target_topic": name, "target_generation": 0}
        row = {**place, **at_target, "first_offset": 0, "last_offset": 9}
        auditor._tell(FLOW, [{**row, "differences": differing}])
        return [row["target_topic"] for row in lake.ask_table("open_incidents")]

    earlier = ContentDiffers(
        "planted", topic="orders", partition=0, generation=0, target_generation=0, **found
    )
    incidents.note([Incident(FLOW, "content_differs", earlier)], "acknowledge")
    assert told(OLD) == []
    assert told(MIRROR) == [MIRROR] == told(MIRROR)
    incidents.settle_all([IncidentKey(FLOW, "content_differs", "orders", 0)], "acknowledge")
    assert told(MIRROR) == [] == told(OLD)
