"""A difference that an operator knows of is not told again, unless it is one of another mirror."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mirrorlake.errors import ContentDiffers
from mirrorlake.lake.incidents import Incident, IncidentKey, Incidents
from mirrorlake.lake.targets import note_targets
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.verify.auditor import Auditor
from tests.support.lake_rows import FLOW, no_session, opened, write_file

OLD, MIRROR = "old.orders", "east.orders"


def test_what_is_known_of_one_mirror_hides_nothing_of_another_one(tmp_path: Path) -> None:
    """Whose generations have the same numbers. Where no name was noted it is of the first one."""
    lake, _ = opened(no_session, write_file(tmp_path))
    deployment: Any = SimpleNamespace(lake=lake)
    auditor = Auditor(deployment, lambda _: None, threading.Event())  # type: ignore[arg-type,return-value]
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
