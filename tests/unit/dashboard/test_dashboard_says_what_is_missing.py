"""No data set of the dashboard calls healthy, or exact, what is missing, old or nowhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.dashboard.data import read_data
from mirrorlake.dashboard.model import load_dashboard
from mirrorlake.errors import ReplicationError
from mirrorlake.groups.checkpoint_plan import (
    BEHIND_LOST,
    EXCLUDED,
    GONE,
    HELD_BACK,
    NO_MIRROR,
    OVER,
    PAST_END,
    REWOUND,
    trimmed_reason,
)
from mirrorlake.lake.changes import WHOLE_LAKE
from mirrorlake.lake.definitions import rows_of, sql_text
from mirrorlake.lake.incidents import Incident, Incidents
from mirrorlake.lake.lake import Lake
from tests.support.lake_rows import FLOW, ago, append, no_session, opened, sample, write_file

NOWHERE = {"target_topic": None, "target_position": None}


def rows(lake: Lake, name: str) -> list[dict[str, Any]]:
    dashboard = load_dashboard()
    only = tuple(dataset for dataset in dashboard.datasets if dataset.name == name)
    found = read_data(lake.now, dashboard.model_copy(update={"datasets": only}))["datasets"][name]
    return [dict(zip((c["name"] for c in found["columns"]), r, strict=True)) for r in found["rows"]]


def objectives(lake: Lake) -> None:
    known = {"flow": FLOW, "enabled": True, "mode": "continuous", "since": ago(7200)}
    known |= {"lag_seconds": 60, "latency_p99_ms": 60_000, "heartbeat_seconds": 60}
    lake.append("objectives", rows_of("objectives", [known]))


@pytest.mark.parametrize(
    ("age", "state"), [(5, "healthy"), (900, "not running"), (86_400, "not running")]
)
def test_a_flow_that_no_process_runs_is_not_healthy(tmp_path: Path, age: int, state: str) -> None:
    """Nothing lagged when it was looked at last."""
    lake = opened(no_session, write_file(tmp_path))[0]
    objectives(lake)
    append(lake, "positions", [sample(age, 100, 100)])
    assert [row["state"] for row in rows(lake, "ds_flows")] == [state]


def test_what_no_flow_has_a_row_for_is_there_as_well(tmp_path: Path) -> None:
    """An incident of the lake as a whole; a flow whose process ended before its first sample."""
    lake = opened(no_session, write_file(tmp_path))[0]
    objectives(lake)
    Incidents(lake).open(WHOLE_LAKE, "other_writer", ReplicationError("who was it?"))
    found = rows(lake, "ds_flows")
    assert [(row["flow"], row["state"], row["open_incidents"]) for row in found] == [
        (WHOLE_LAKE, "needs a decision", 1),
        (FLOW, "needs attention", 0),
    ]
    text = sql_text("notebooks", "incidents_of")
    assert [row["kind"] for row in lake.now.rows(text, {"flow": FLOW})] == ["other_writer"]


def with_group(directory: Path, *positions: dict[str, object], sampled: bool = True) -> Lake:
    lake = opened(no_session, write_file(directory))[0]
    if sampled:
        append(lake, "positions", [sample(5, 100, 100, partition=n) for n in range(len(positions))])
    common = {"flow": FLOW, "group_id": "billing", "topic": "orders", "source_position": 90}
    common |= {"target_topic": "east.orders", "target_position": 90, "checkpointed_at": ago(5)}
    made = [
        {**common, "partition": number, "synced": False, **position}
        for number, position in enumerate(positions)
    ]
    lake.append("checkpoints", rows_of("checkpoints", made))
    return lake


@pytest.mark.parametrize(
    ("position", "state", "fails_over"),
    [
        ({}, "exact", "exactly"),
        ({"reason": f"{PAST_END} (it ends at 100)"}, "held back", "reads some records again"),
        ({"reason": trimmed_reason(7)}, "lacks records", "without some records"),
        ({"reason": NO_MIRROR, **NOWHERE}, "not there", "not at all"),
        *(
            pytest.param(*case, marks=pytest.mark.wide("test_only_what_is_exact_is_called_so"))
            for case in (
                ({"reason": HELD_BACK}, "held back", "reads some records again"),
                ({"reason": BEHIND_LOST}, "held back", "reads some records again"),
                (
                    {"reason": f"{HELD_BACK}; {trimmed_reason(7)}"},
                    "held back",
                    "without some records",
                ),
                ({"reason": OVER}, "not there", "not at all"),
                (
                    {"reason": EXCLUDED, "source_position": None, **NOWHERE},
                    "not there",
                    "not at all",
                ),
            )
        ),
    ],
)
def test_only_what_is_exact_is_called_so(
    tmp_path: Path, position: dict[str, object], state: str, fails_over: str
) -> None:
    lake = with_group(tmp_path, position)
    assert [row["state"] for row in rows(lake, "ds_group_positions")] == [state]
    (group,) = rows(lake, "ds_groups")
    assert group["fails_over"] == fails_over
    assert group["exact_positions"] == (state == "exact")


@pytest.mark.parametrize(
    ("positions", "fails_over", "exact"),
    [
        (({}, {"reason": NO_MIRROR, **NOWHERE}), "in part", 1),
        (({}, {"reason": HELD_BACK}), "reads some records again", 1),
        (({}, {"reason": GONE}), "exactly", 1),
    ],
)
def test_a_group_is_as_its_worst_position(
    tmp_path: Path, positions: Sequence[dict[str, object]], fails_over: str, exact: int
) -> None:
    (group,) = rows(with_group(tmp_path, *positions), "ds_groups")
    assert (group["fails_over"], group["exact_positions"]) == (fails_over, exact)


def ready(lake: Lake) -> int:
    (group,) = lake.now.rows(sql_text("notebooks", "ready_groups"), {"flow": FLOW})
    return int(group["ready"])


def other_log(kind: str, *, first: int, flow: str = "east->lab", **more: object) -> Incident:
    """What another flow from the same source reports: it concerns all."""
    place = {"topic": "orders", "partition": 0, "generation": 0, **more}
    error = ReplicationError("it is another one", first_offset=first, last_offset=99, **place)
    return Incident(flow, kind, error)


AGAIN = other_log("topic_recreated", first=0, partition=None)
BACK = other_log("source_rewound", first=50)


@pytest.mark.parametrize(
    ("incident", "resolution", "is_another"),
    [
        (AGAIN, None, True),
        (AGAIN, "new-generation", False),
        (BACK, None, True),
        (other_log("source_rewound", first=90), None, False),
        *(
            pytest.param(
                *case,
                marks=pytest.mark.wide(
                    "test_a_position_that_is_not_of_the_log_that_was_mirrored_is_not_called_exact"
                ),
            )
            for case in (
                (AGAIN, "stop", True),
                (BACK, "stop", True),
                (BACK, "new-generation", False),
                (other_log("source_rewound", first=50, partition=1), None, False),
                (
                    other_log("topic_recreated", first=0, flow="lab->west", partition=None),
                    None,
                    False,
                ),
            )
        ),
    ],
)
def test_a_position_that_is_not_of_the_log_that_was_mirrored_is_not_called_exact(
    tmp_path: Path, incident: Incident, resolution: str | None, is_another: bool
) -> None:
    """`failover` does not move it either."""
    lake = with_group(tmp_path, {"synced": True})
    if resolution is None:
        Incidents(lake).report([incident])
    else:
        Incidents(lake).note([incident], resolution)
    (position,), (group,) = rows(lake, "ds_group_positions"), rows(lake, "ds_groups")
    assert (position["state"] == "not there") == (group["fails_over"] == "not at all") == is_another
    assert (position["state"] == "exact") == (group["exact_positions"] == 1) == (not is_another)
    assert bool(position["reason"]) == is_another and ready(lake) == (not is_another)


def test_a_log_that_went_back_before_a_newer_generation_began_says_nothing(tmp_path: Path) -> None:
    lake = with_group(tmp_path, {"generation": 1})
    Incidents(lake).note([BACK], "stop")
    place = {"source_cluster": "east", "topic": "orders", "partition": 0, "topic_id": "x"}
    begun = {**place, "generation": 1, "first_offset": 50, "started_at": ago(1)}
    lake.append("generations", rows_of("generations", [begun]))
    assert [row["state"] for row in rows(lake, "ds_group_positions")] == ["exact"]


def test_without_a_sample_it_is_not_known_what_is_read_again(tmp_path: Path) -> None:
    lake = with_group(tmp_path, {"reason": HELD_BACK}, {}, sampled=False)
    held, exact = sorted(rows(lake, "ds_group_positions"), key=lambda row: row["partition"])
    (group,) = rows(lake, "ds_groups")
    assert (held["read_again"], exact["read_again"], group["read_again"]) == (None, 0, None)
    assert held["waiting"] is exact["waiting"] is group["waiting"] is None


@pytest.mark.parametrize(
    ("reason", "synced", "wanted"),
    [
        (None, False, 1),
        (REWOUND, True, 1),
        (OVER, False, 0),
        (HELD_BACK, True, 0),
        (f"{PAST_END} (it ends at 100)", True, 0),
        (trimmed_reason(7), True, 0),
    ],
)
def test_a_position_that_is_not_exact_is_not_ready_however_it_was_moved(
    tmp_path: Path, reason: str | None, synced: bool, wanted: int
) -> None:
    assert ready(with_group(tmp_path, {"reason": reason, "synced": synced})) == wanted
