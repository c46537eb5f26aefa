"""A clock that was an hour ahead leaves samples of a time to come: they hide none that are taken
since, and keep no flow alive that is not."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
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


def batch(seconds_ago: float, p99_ms: int, topic: str = "orders") -> dict[str, object]:
    """A row of `latency` of one batch of 10 records."""
    percentiles = {f"replication_{name}_ms": p99_ms for name in ("p50", "p95", "p99", "max")}
    return {
        "flow": FLOW, "batch_id": 1, "topic": topic, "partition": 0, "record_count": 10,
        "byte_count": 100, "produced_at": ago(seconds_ago), "replication_min_ms": p99_ms,
        "replication_avg_ms": float(p99_ms), "way": "short", **percentiles,
    }  # fmt: skip


def produced(lake: Lake, *batches: dict[str, object]) -> None:
    lake.append("latency", rows_of("latency", batches))


def watching(lake: Lake, **more: object) -> None:
    """Change the objectives of the flow."""
    rows = lake.ask_table("objectives")
    assert isinstance(lake, PathLake)
    lake.tables.rewrite("objectives", lambda _: rows_of("objectives", [{**rows[0], **more}]))


@pytest.mark.parametrize(
    "ahead",
    [[], [batch(AHEAD, 5, "heartbeats")], [batch(400, -3_600_000, "heartbeats")]],
    ids=["right", "arrived ahead", "sent ahead"],
)
def test_no_heartbeat_of_a_time_to_come_keeps_a_flow_alive(
    tmp_path: Path, ahead: list[dict[str, object]]
) -> None:
    lake = a_lake(tmp_path, [sample(5, 100, 100)])
    watching(lake, heartbeats=True)
    produced(lake, batch(500, 5, "heartbeats"), *ahead)
    assert alerts(lake) == ["heartbeat"]
    (row,) = lake.ask_table("flow_status")
    assert row["heartbeat_age_seconds"] >= 399


@pytest.mark.parametrize("since", [7200.0, AHEAD], ids=["right", "ahead"])
def test_a_start_of_a_time_to_come_hides_no_end(tmp_path: Path, since: float) -> None:
    lake = a_lake(tmp_path, [sample(900, 100, 100)])
    watching(lake, since=ago(since), heartbeats=True)
    assert alerts(lake) == ["heartbeat", "not_running"]


@pytest.mark.parametrize("ahead", [[], [batch(AHEAD, 5)]], ids=["right", "ahead"])
def test_what_was_produced_since_is_what_is_late(
    tmp_path: Path, ahead: list[dict[str, object]]
) -> None:
    lake = a_lake(tmp_path, [sample(5, 100, 100)])
    produced(lake, batch(120, 90_000), *ahead)
    assert alerts(lake) == ["latency"]
    (flow,), (partition,) = lake.ask_table("flow_status"), lake.ask_table("partition_status")
    for row in (flow, partition):
        assert row["replication_p99_ms"] == 90_000
        assert row["records_per_second"] == 0, "nothing came in the last minute"
    assert flow["state"] == "idle"


def test_what_was_produced_at_a_time_to_come_counts_all_the_same(tmp_path: Path) -> None:
    lake = a_lake(tmp_path, [sample(5, 100, 100)])
    produced(lake, batch(AHEAD, 5))
    (row,) = lake.ask_table("partition_status")
    assert (row["record_count"], row["replication_p99_ms"]) == (10, 5)
    assert row["last_produced_at"] is not None


def test_a_clock_that_was_years_ahead_empties_no_history(tmp_path: Path) -> None:
    lake = a_lake(tmp_path, [sample(60, 100, 500), sample(-4 * 365 * 86_400, 100, 100)])
    assert 400 in [row["lag_records"] for row in lake.ask_table("lag_minutes")]
