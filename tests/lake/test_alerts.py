"""The view `alerts` over known histories, written into a lake without Kafka, and what `status`
makes of it.

DuckDB answers, since Spark takes ten seconds a question; `test_both_engines.py` compares the two.
"""

import re
from collections.abc import Mapping
from datetime import timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.objectives import Mode, note_heartbeat_topics, note_objectives
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.run.status import read_status
from mirrorlake.spark.session import settings_for_now
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    now_of,
    opened,
    run_row,
    sample,
    staged,
    write_file,
)

OBJECTIVES = {
    "lag_seconds": 60,
    "latency_p99_ms": 5000,
    "heartbeat_seconds": 60,
    "stuck_seconds": 600,
}

#: What a sample lacks that says that its partition could not be sampled.
LOST = (
    "source_start",
    "source_end",
    "staged_end",
    "produced_end",
    "target_end",
    "lag_records",
    "lag_seconds",
)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """A lake with one flow that runs all the time and has done so for a day."""
    return watched(spark, tmp_path)


def watched(
    spark: SparkSession,
    directory: Path,
    mode: Mode | None = "continuous",
    flow: Mapping[str, object] | None = None,
) -> Lake:
    file = write_file(
        directory,
        objectives=OBJECTIVES,
        flows={FLOW: {"emit_heartbeats_enabled": False, **(flow or {})}},
    )
    lake, topology = opened(spark, file)
    note_objectives(lake, topology, {} if mode is None else {FLOW: mode})
    earlier(lake, "objectives", "since", timedelta(days=1))
    return lake


def earlier(lake: Lake, table: str, column: str, by: timedelta) -> None:
    """Make the times of a column earlier."""
    assert isinstance(lake, PathLake)

    def changed(rows: pa.Table) -> pa.Table:
        moved = pc.subtract(rows[column], pa.scalar(by)).cast(rows[column].type)
        return rows.set_column(rows.column_names.index(column), column, moved)

    lake.tables.rewrite(table, changed)


def alerts(lake: Lake) -> list[tuple[object, ...]]:
    rows = now_of(lake).rows("SELECT alert, topic, partition, value, threshold FROM alerts")
    return sorted((tuple(row.values()) for row in rows), key=str)


def kinds(lake: Lake) -> set[str]:
    return {row["alert"] for row in now_of(lake).table_rows("alerts")}


def test_a_lake_without_anything_raises_none(spark: SparkSession, tmp_path: Path) -> None:
    assert alerts(opened(spark, write_file(tmp_path))[0]) == []


@pytest.mark.slow
def test_a_partition_that_stood_still_is_stuck_since_it_stopped(lake: Lake) -> None:
    rows = [
        sample(3000, 50, 50),
        sample(2000, 90, 100),
        *(sample(age, 100, 110) for age in (1500, 900, 300, 5)),
    ]
    append(lake, "positions", rows)
    found = (
        lake.table("alerts")
        .select("flow", "alert", "topic", "partition", "threshold", "since")
        .drop("flow")
    )
    wanted = lake.spark.createDataFrame(
        [("stuck", "orders", 0, 600.0, rows[2]["sampled_at"])],
        "alert string, topic string, partition int, threshold double, since timestamp",
    )
    # columns have comments
    assert_df_equality(found, wanted, ignore_nullable=True, ignore_metadata=True)
    assert lake.table("alerts").where(F.col("value").between(1490, 1500)).count() == 1


@pytest.mark.parametrize(
    "history",
    [
        [
            (700, 100, 110),
            (650, 100, 100),
            (300, 100, 110),
            (5, 100, 110),
        ],  # it had nothing to do in between
        [(700, 90, 110), (300, 100, 110), (5, 100, 110)],  # it moved
        [(5000, 100, 100), (5, 100, 100)],  # idle
        [(4000, 100, 110), (3000, 100, 110)],  # nobody samples any more
        [(5, 100, 110)],  # one sample says nothing
    ],
)
def test_what_moved_or_had_nothing_to_do_is_not_stuck(
    lake: Lake, history: list[tuple[int, int, int]]
) -> None:
    append(lake, "positions", [sample(*item) for item in history])
    assert "stuck" not in kinds(lake)


def test_the_time_in_which_no_process_ran_is_none_of_standing_still(lake: Lake) -> None:
    """As of a run that was stopped overnight: samples say since when it would stand still."""
    stood = [sample(30_000, 100, 110), sample(29_000, 100, 110, stalled_since=ago(30_000))]
    append(lake, "positions", [*stood, sample(5, 100, 110, stalled_since=ago(500))])
    assert "stuck" not in kinds(lake)
    append(lake, "positions", [sample(1, 100, 110, stalled_since=ago(1_500))])
    ((_, _, _, seconds, _),) = [row for row in alerts(lake) if row[0] == "stuck"]
    assert 1_495 < seconds < 1_502


def test_samples_hold_until_the_flow_was_sampled_last(lake: Lake) -> None:
    """An idle partition is written once an hour, one that stands still once a minute; who is gone
    is not stuck."""
    append(lake, "positions", [sample(3000, 50, 50, partition=1), sample(5, 9, 9, partition=2)])
    append(lake, "positions", [sample(age, 100, 110) for age in (1500, 900, 55)])
    append(lake, "positions", [sample(age, 100, 110, partition=3) for age in (1500, 900, 55)])
    append(lake, "positions", [{**sample(30, 0, 0, partition=3), **dict.fromkeys(LOST)}])
    ((kind, _, partition, since, _),) = alerts(lake)
    assert (kind, partition) == ("stuck", 0) and 1490 < since < 1500


def test_lag_above_the_objective_since_it_grew(lake: Lake) -> None:
    rows = [
        sample(300, 10, 90, 70.0),
        sample(200, 20, 90, 10.0),
        sample(100, 30, 90, 61.0),
        sample(5, 40, 90, 75.5),
    ]
    append(lake, "positions", rows)
    append(lake, "positions", [sample(5, 40, 90, 59.0, partition=1)])
    assert alerts(lake) == [("lag", "orders", 0, 75.5, 60.0)]
    (alert,) = now_of(lake).table_rows("alerts")
    assert alert["since"].replace(tzinfo=timezone.utc) == rows[2]["sampled_at"]


def late(seconds_ago: float, p99: int, count: int = 1000, **more: object) -> dict[str, object]:
    return {
        "flow": FLOW,
        "batch_id": 1,
        "topic": "orders",
        "partition": 0,
        "record_count": count,
        "replication_min_ms": 10,
        "replication_p99_ms": p99,
        "produced_at": ago(seconds_ago),
        **more,
    }


def test_latency_counts_by_records_and_of_the_last_minutes(lake: Lake) -> None:
    append(lake, "positions", [sample(5, 1, 1)])
    append(lake, "latency", [late(600, 90_000), late(60, 900), late(30, 80_000, 1), late(10, 900)])
    assert alerts(lake) == []
    append(lake, "latency", [late(5, 6000, 5000, topic="payments")])
    assert alerts(lake) == [("latency", "payments", None, 6000.0, 5000.0)]


@pytest.mark.parametrize("topic", ["heartbeats", "north.heartbeats"])
def test_heartbeats_that_wait_to_be_landed_are_not_late(lake: Lake, topic: str) -> None:
    append(lake, "positions", [sample(5, 40, 90, 75.5, topic=topic)])
    append(lake, "latency", [late(5, 10_000, topic=topic)])
    assert kinds(lake) == (set() if topic == "heartbeats" else {"lag", "latency"}), (
        "a name alone says nothing"
    )
    note_heartbeat_topics(lake, FLOW, {"heartbeats", "north.heartbeats"})
    assert alerts(lake) == []


def test_records_made_before_the_flow_was_started_are_not_late(lake: Lake) -> None:
    append(lake, "positions", [sample(5, 1, 1)])
    append(lake, "latency", [late(5, 3 * 86_400_000)])
    assert alerts(lake) == []


def test_a_heartbeat_that_is_too_old(spark: SparkSession, tmp_path: Path) -> None:
    lake = watched(spark, tmp_path, flow={"emit_heartbeats_enabled": True})
    append(lake, "positions", [sample(5, 1, 1)])
    append(lake, "latency", [late(30, 10, topic="heartbeats")])
    assert alerts(lake) == []
    earlier(lake, "latency", "produced_at", timedelta(minutes=1))
    ((kind, topic, _, age, threshold),) = alerts(lake)
    assert (kind, topic, threshold) == ("heartbeat", "heartbeats", 60.0) and 89 < age < 120
    note_objectives(lake, opened(spark, tmp_path / "mirrorlake.yml")[1], {FLOW: "once"})
    assert alerts(lake) == []


def test_a_process_that_died_is_told_even_without_heartbeats(lake: Lake) -> None:
    append(lake, "positions", [sample(3000, 1, 1)])
    assert kinds(lake) == {"not_running"}


def test_a_process_that_died_long_ago_is_told_by_the_window_that_is_read(lake: Lake) -> None:
    append(lake, "positions", [sample(20 * 3600, 1, 1)])
    ((kind, _, _, age, threshold),) = alerts(lake)
    assert (kind, threshold) == ("not_running", 600.0) and 13 * 3600 <= age < 13 * 3600 + 60


@pytest.mark.slow
def test_samples_before_the_window_are_skipped_by_their_statistics(lake: Lake) -> None:
    append(lake, "positions", [sample(3000, 1, 1)])
    plan = lake.sql("EXPLAIN SELECT * FROM alerts").collect()[0][0]
    scans = [line for line in plan.splitlines() if "FileScan" in line and "sampled_at" in line]
    assert len(scans) > 1 and all("GreaterThanOrEqual(sampled_at," in line for line in scans), plan


@pytest.mark.parametrize("how", ["never", "once", "stopped", "disabled", "paused", "topic paused"])
def test_what_nobody_is_to_run_raises_none(spark: SparkSession, tmp_path: Path, how: str) -> None:
    modes: dict[str, Mode | None] = {"never": None, "once": "once", "stopped": "stopped"}
    flow: dict[str, object] = {
        "disabled": {"enabled": False},
        "paused": {"paused": True},
        "topic paused": {"paused": ["ord.*"]},
    }.get(how, {})
    lake = watched(spark, tmp_path, modes.get(how, "continuous"), flow)
    age = 3000 if how != "topic paused" else 5
    append(lake, "positions", [sample(9000, 1, 10, 9000.0), sample(age, 1, 10, 12000.0)])
    append(lake, "latency", [late(5 if how in modes else 3000, 60_000)])
    assert alerts(lake) == []


def test_open_incidents_alert_whatever_the_flow_does(spark: SparkSession, tmp_path: Path) -> None:
    lake = watched(spark, tmp_path, None, {"enabled": False})
    row = {
        "flow": FLOW,
        "at": ago(99_999),
        "kind": "target_refused",
        "topic": "orders",
        "partition": 3,
        "detail": "big",
    }
    append(lake, "incidents", [row, {**row, "partition": 4, "resolved_at": ago(1)}])
    assert alerts(lake) == [("incident", "orders", 3, None, None)]


def test_a_hole_in_the_map_is_one_only_if_records_lie_in_it(lake: Lake) -> None:
    append(lake, "positions", [sample(5, 100, 100)])
    # 10 and 20 to 24 are markers
    append(lake, "offset_map", [run_row(0, 9), run_row(11, 19), run_row(25, 29)])
    append(lake, "records", staged([*range(10), *range(11, 20), *range(25, 30)]))
    append(
        lake,
        "records",
        staged([10], generation=1) + staged([10], partition=1) + staged([10], source_cluster="x"),
    )
    assert alerts(lake) == []
    append(lake, "records", staged([21, 22]))
    assert alerts(lake) == [("map_gap", "orders", 0, 2.0, 0.0)]
    given_up = {
        "flow": FLOW,
        "at": ago(9),
        "kind": "target_refused",
        "topic": "orders",
        "partition": 0,
        "first_offset": 21,
        "last_offset": 22,
        "resolved_at": ago(1),
        "resolution": "skip",
    }
    append(lake, "incidents", [given_up])
    assert alerts(lake) == []


def test_forgotten_records_neither_hide_a_hole_nor_make_one(lake: Lake) -> None:
    append(lake, "positions", [sample(5, 100, 100)])
    append(lake, "offset_map", [run_row(0, 9), run_row(11, 19), run_row(25, 29)])
    append(lake, "records", staged([*range(5), *range(11, 20), 21, 22, *range(25, 30)]))
    assert alerts(lake) == [], "as many were taken away as are missing"
    gone = {
        "source_cluster": "east",
        "topic": "orders",
        "partition": 0,
        "generation": 0,
        "first_offset": 5,
        "last_offset": 10,
        "record_count": 5,
        "forget_id": "f",
        "noted_at": ago(9),
    }
    append(lake, "forgotten", [gone])
    assert alerts(lake) == [], "noted, and not known to be deleted"
    append(lake, "forgotten", [{**gone, "deleted_at": ago(5)}])
    assert alerts(lake) == [("map_gap", "orders", 0, 2.0, 0.0)]


@pytest.mark.slow
def test_both_engines_describe_a_hole_alike(lake: Lake) -> None:
    append(lake, "positions", [sample(5, 100, 100)])
    append(lake, "offset_map", [run_row(0, 9), run_row(11, 19)])
    append(lake, "records", staged([*range(20)]))
    (row,) = now_of(lake).table_rows("alerts")
    assert row["value"] == 1.0 and row["detail"] == lake.table("alerts").collect()[0]["detail"]


@pytest.mark.slow
def test_records_are_not_sorted_to_look_for_holes(lake: Lake) -> None:
    """However many there are: `status` on a lake of ten million took half a minute when they
    were."""
    with settings_for_now(lake.spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
        plan = lake.sql("EXPLAIN SELECT * FROM alerts").collect()[0][0]
    joins = re.findall(r"(\w+Join) .*\(offset#", plan)
    assert joins == ["BroadcastHashJoin", "BroadcastHashJoin"], plan


def test_records_taken_away_by_retention_are_no_gap(lake: Lake) -> None:
    append(lake, "positions", [sample(5, 100, 100)])
    append(lake, "offset_map", [run_row(0, 9), run_row(11, 19)])
    append(lake, "records", staged(range(15, 20)))
    assert alerts(lake) == []


def test_thresholds_follow_the_file(spark: SparkSession, tmp_path: Path) -> None:
    lake = watched(spark, tmp_path)
    append(lake, "positions", [sample(5, 40, 90, 75.0)])
    assert kinds(lake) == {"lag"}
    before = now_of(lake).table_rows("objectives")
    objectives = {"lag_seconds": 10, "flows": {FLOW: {"lag_seconds": 100}}}
    file = write_file(
        tmp_path, objectives=objectives, flows={FLOW: {"emit_heartbeats_enabled": False}}
    )
    topology = opened(spark, file)[1]
    note_objectives(lake, topology, {})
    assert kinds(lake) == set()
    rows = now_of(lake).table_rows("objectives")
    assert [(row["lag_seconds"], row["since"]) for row in rows] == [(100, before[0]["since"])]
    note_objectives(lake, topology, {})
    assert now_of(lake).table_rows("objectives") == rows


def test_a_flow_that_left_the_file_is_held_to_nothing(spark: SparkSession, tmp_path: Path) -> None:
    lake = watched(spark, tmp_path)
    topology = opened(spark, write_file(tmp_path, flows={"west->east": {}}))[1]
    note_objectives(lake, topology, {"west->east": "continuous"}, gone=[FLOW, "west->east"])
    assert {row["flow"]: row["enabled"] for row in now_of(lake).table_rows("objectives")} == {
        FLOW: False,
        "west->east": True,
    }


@pytest.mark.slow
def test_status_tells_alerts_of_the_file_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    lake = watched(spark, tmp_path)
    append(lake, "positions", [sample(5, 40, 90, 75.0)])
    status = read_status(lake, Connections(opened(spark, tmp_path / "mirrorlake.yml")[1]))
    assert not status["healthy"] and [row["alert"] for row in status["alerts"]] == ["lag"]
    disabled = opened(spark, write_file(tmp_path, flows={FLOW: {"enabled": False}}))[1]
    status = read_status(lake, Connections(disabled))
    assert status["healthy"] and status["alerts"] == []
