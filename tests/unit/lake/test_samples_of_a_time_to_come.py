"""A clock that was an hour ahead leaves samples of a time to come: they hide none that are taken
since, and keep no flow alive that is not."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.samples import newest_samples
from mirrorlake.run.other_process import run_by_other_process
from mirrorlake.trace.reading import flow_state_of
from tests.support.lake_rows import FLOW, ago, append, no_session, opened, sample, write_file

AHEAD = -3600.0


def a_lake(directory: Path, samples: Sequence[dict[str, object]]) -> Lake:
    """Of a flow that ran continuously for hours, with these samples."""
    lake = opened(no_session, write_file(directory))[0]
    append(lake, "positions", samples)
    objectives = {"flow": FLOW, "enabled": True, "mode": "continuous", "since": ago(7200)}
    objectives |= {"lag_seconds": 60, "latency_p99_ms": 60_000, "heartbeat_seconds": 60}
    objectives |= {"stuck_seconds": 600, "heartbeats": False, "gaps": False, "noted_at": ago(7200)}
    lake.append("objectives", rows_of("objectives", [objectives]))
    return lake


def alerts(lake: Lake) -> list[str]:
    return sorted(row["alert"] for row in lake.ask_table("alerts"))


@pytest.mark.parametrize("ahead", [[], [sample(AHEAD, 100, 100)]], ids=["right", "ahead"])
def test_what_was_sampled_since_counts(tmp_path: Path, ahead: list[dict[str, object]]) -> None:
    late = [sample(age, 100, 500, lag_seconds=900 - age) for age in (700, 400, 5)]
    lake = a_lake(tmp_path, [*ahead, *late])
    (row,) = lake.ask_table("flow_status")
    assert (row["lag_records"], row["state"]) == (400, "replicating")
    assert row["lag_seconds"] >= 890
    assert alerts(lake) == ["lag", "stuck"]
    (known,) = newest_samples(lake, FLOW)
    assert known["lag_records"] == 400 and known["held_at"] == known["at"]


@pytest.mark.parametrize("ahead", [[], [sample(AHEAD, 100, 100)]], ids=["right", "ahead"])
def test_a_flow_that_no_process_runs_is_told(
    tmp_path: Path, ahead: list[dict[str, object]]
) -> None:
    lake = a_lake(tmp_path, [*ahead, sample(900, 100, 100)])
    (row,) = lake.ask_table("flow_status")
    assert row["state"] == "not running"
    assert alerts(lake) == ["not_running"]
    assert run_by_other_process(lake, [FLOW]) is None
    at = flow_state_of(lake.now, FLOW, "orders").sampled_at
    assert at is not None and at < ago(800).replace(tzinfo=None)


def test_a_clock_that_is_somewhat_ahead_of_ours_says_what_it_says(tmp_path: Path) -> None:
    """Two hosts never have the same one."""
    lake = a_lake(tmp_path, [sample(60, 100, 500), sample(-60, 500, 500)])
    (row,) = lake.ask_table("flow_status")
    assert (row["lag_records"], row["state"]) == (0, "idle")
