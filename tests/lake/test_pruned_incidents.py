"""Incidents that are over go with other history, but never one by whose resolution anybody goes."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake import table_upkeep
from mirrorlake.lake.decisions import FOUND_NONE, READ_AGAIN
from mirrorlake.lake.definitions import sql_text
from mirrorlake.lake.incidents import CAME_THROUGH, WENT_ON, Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.targets import LivingMirror, target_decisions
from mirrorlake.landing.generations import decisions_of
from mirrorlake.run.choices import CHOICES, choices_of
from tests.support.lake_rows import FLOW, ago, append, now_of

DAY = 86_400
#: What decides nothing once it is said: the records are tried again, or somebody knows of it.
_OVER = {"retry", "acknowledge"}
_UNFOUNDED = "the topic is the one that it was"
assert _UNFOUNDED in sql_text("queries", "close_unfounded_targets")
#: How incidents end by themselves, and of what kinds.
_BY_THEMSELVES = {
    "landing_failed": CAME_THROUGH,
    "source_refused": CAME_THROUGH,
    "target_refused": WENT_ON,
    "target_recreated": _UNFOUNDED,
}


def test_what_decides_stays_for_ever(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(spark, Location(path=str(tmp_path / "lake")), tmp_path)
    kinds = [*CHOICES, "flow_stopped", "content_differs"]
    decided = [(kind, choice) for kind in kinds for choice in choices_of(kind)]
    decided.append(("stage_trimmed", f"{READ_AGAIN} from 7"))
    decided.append(("stage_trimmed", FOUND_NONE))
    ended = [
        *decided,
        *_BY_THEMSELVES.items(),
        ("kind of a newer version", "choice of a newer version"),
    ]
    append(lake, "incidents", [_row(number, *item, 200) for number, item in enumerate(ended)])
    append(
        lake,
        "incidents",
        [_row(100 + number, *item, 5) for number, item in enumerate(_BY_THEMSELVES.items())],
    )
    append(
        lake,
        "incidents",
        [{**_row(200, "flow_waits", "", 200), "resolved_at": None, "resolution": None}],
    )
    before = _decisions(lake)
    passing = [item for item in ended if item in _BY_THEMSELVES.items() or item[1] in _OVER]
    passing.remove(("content_differs", "acknowledge"))

    assert table_upkeep.remove_history(
        lake, "incidents", int(ago(90 * DAY).timestamp() * 1000)
    ) == len(passing)

    assert _decisions(lake) == before
    left = sorted(
        (row["kind"], row["resolution"] or "") for row in now_of(lake).table_rows("incidents")
    )
    kept = [item for item in ended if item not in passing]
    assert left == sorted([*kept, *_BY_THEMSELVES.items(), ("flow_waits", "")])


def _row(number: int, kind: str, resolution: str, days: float) -> dict[str, object]:
    """One incident of a partition of its own, which ended so many days ago."""
    place = {
        "topic": "orders",
        "partition": number,
        "first_offset": number,
        "last_offset": number + 1,
    }
    at = {"at": ago((days + 1) * DAY), "resolved_at": ago(days * DAY), "resolution": resolution}
    return {"flow": FLOW, "kind": kind, **place, "target_generation": number, **at}


def _decisions(lake: Lake) -> list[Any]:
    """All that is gone by, without what says only how something ended."""
    ours = [
        target_decision
        for target_decision in target_decisions(lake, FLOW)
        if target_decision.resolution in ("again", "continue", "stop")
    ]
    source = [item for item in decisions_of(lake, "east") if item.resolution != "acknowledge"]
    differences = [
        row for row in lake.ask("mirror_incidents", flow=FLOW) if row["kind"] == "content_differs"
    ]
    return [
        Incidents(lake).decided(FLOW, lambda _: LivingMirror(None, None)),
        sorted(map(repr, source)),
        ours,
        differences,
    ]
