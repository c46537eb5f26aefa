"""The views (DESIGN.md, "Tables") on known histories: idle, lagging, stopped, skewed clocks, gaps,
nothing at all."""

import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import Row, SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake.definitions import VIEWS, definition
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from tests.support.histories import FLOW, History
from tests.support.lake_rows import now_of
from tests.support.lanes import BOTH_ENGINES

pytestmark = BOTH_ENGINES

#: A minute that is long over, so that rows of one minute are of one minute.
NOON = datetime(2026, 3, 1, 12, 0, 30, tzinfo=timezone.utc)
#: What is young must be so when the views are asked, after a slow machine has written it: seconds
#: before now.
FRESH = -45
SLACK = 240.0


def rows(lake: Lake, view: str, columns: str = "*", where: str = "true") -> list[dict[str, Any]]:
    return list(now_of(lake).rows(f"SELECT {columns} FROM {view} WHERE {where}"))


def same(lake: Lake, query: str, expected: list[Row]) -> None:
    """The query gives these rows, in this order, of these types."""
    found = [tuple(row.values()) for row in now_of(lake).rows(query)]
    assert repr(found) == repr([tuple(row) for row in expected])


@pytest.fixture
def history(spark: SparkSession, tmp_path: Path) -> History:
    return History(spark, tmp_path)


def test_every_view_answers_in_an_empty_lake(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(spark, Location(path=str(tmp_path / "lake")), tmp_path)
    for view in VIEWS:
        assert rows(lake, view) == [], view


def test_an_idle_flow_is_idle_and_not_late(history: History) -> None:
    history.sample(FRESH, "orders", 0, 500, 500, target_end=510).sample(FRESH, "orders", 1, 0, 0)
    history.sample(13, "orders", 0, 500, 400, 8.0).batch(3000, "orders", 0, 7, 500, way="long")
    history.batch(3000, "orders", 1, 7, 0, None, way="long").batch(90_000, "orders", 0, 3, 0, None)
    history.sample(FRESH, "heartbeats", 0, 90, 89, 0.5).batch(
        FRESH, "heartbeats", 0, 9, 1, [4, 4, 4, 4, 4, 4]
    )
    lake = history.write()
    same(
        lake,
        "SELECT topic, partition, lag_records, lag_seconds, sampled_lag_seconds, target_end FROM "
        "replication_lag WHERE topic = 'orders' ORDER BY partition",
        [Row("orders", 0, 0, 0.0, 0.0, 510), Row("orders", 1, 0, 0.0, 0.0, None)],
    )
    (flow,) = rows(lake, "flow_status")
    assert (
        flow["state"] == "idle"
        and flow["lag_records"] == 0
        and flow["topics"] == 2
        and flow["partitions"] == 3
    )
    assert flow["record_count"] == 501 and flow["open_incidents"] == 0
    assert (flow["short_batches"], flow["long_batches"]) == (1, 1), (
        "of the last day, each batch once"
    )
    assert FRESH <= flow["heartbeat_age_seconds"] < SLACK
    same(
        lake,
        "SELECT partition, state, record_count, byte_count, CAST(records_per_second AS DOUBLE) AS "
        "rate, replication_p99_ms FROM partition_status WHERE topic = 'orders' ORDER BY partition",
        [Row(0, "at the end", 500, 50_000, 0.0, 4), Row(1, "at the end", 0, 0, 0.0, None)],
    )


def test_a_lagging_flow_tells_how_much_and_since_when(history: History) -> None:
    history.sample(FRESH, "orders", 0, 1000, 400, 95.5).sample(FRESH, "orders", 1, 50, 50).sample(
        FRESH, "orders", 2, 70, 60, 3.0
    )
    history.sample(600, "orders", 0, 400, 400).batch(FRESH, "orders", 1, 3, 600)
    lake = history.write()
    same(
        lake,
        "SELECT partition, lag_records, lag_seconds, source_end, produced_end FROM replication_lag "
        "ORDER BY partition",
        [Row(0, 600, 95.5, 1000, 400), Row(1, 0, 0.0, 50, 50), Row(2, 10, 3.0, 70, 60)],
    )
    same(
        lake,
        "SELECT flow, topics, partitions, lag_records, lag_seconds, state, open_incidents FROM "
        "flow_status",
        [Row(FLOW, 1, 3, 610, 95.5, "replicating", 0)],
    )
    same(
        lake,
        "SELECT partition, state, CAST(records_per_second AS DOUBLE) AS rate FROM partition_status "
        "ORDER BY partition",
        [Row(0, "behind", 0.0), Row(1, "at the end", 10.0), Row(2, "behind", 0.0)],
    )


def test_a_flow_that_stopped_gets_later_by_itself(history: History) -> None:
    history.sample(7200, "orders", 0, 1000, 400, 30.0).sample(7200, "orders", 1, 50, 50)
    history.batch(7205, "orders", 0, 3, 400, [1, 2, 3, 4, 50, 60]).batch(
        90_000, "orders", 0, 1, 10, [9] * 6
    )
    lake = history.write()
    behind, idle = sorted(rows(lake, "replication_lag"), key=lambda row: row["partition"])
    assert behind["sampled_lag_seconds"] == 30.0
    assert (
        7230 <= behind["lag_seconds"] < 7230 + SLACK
        and 7200 <= behind["sample_age_seconds"] < 7200 + SLACK
    )
    assert idle["lag_seconds"] == 0.0, "it had all at the last sample: what came since nobody knows"
    (flow,) = rows(lake, "flow_status")
    assert flow["state"] == "not running" and 7230 <= flow["lag_seconds"] < 7230 + SLACK
    assert (flow["replication_p50_ms"], flow["replication_p95_ms"], flow["replication_p99_ms"]) == (
        3,
        4,
        50,
    )
    assert flow["records_per_second"] == 0 and flow["record_count"] == 410
    assert {row["state"] for row in rows(lake, "partition_status")} == {"not running"}


def test_skewed_clocks_give_negative_latency_and_not_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    history = History(spark, tmp_path, NOON)
    history.batch(0, "orders", 0, 1, 10, [-900, -500, -480, -300, -250, -200])
    history.batch(5, "orders", 1, 1, 30, [-100, -60, -50, -30, -20, 10])
    lake = history.write()
    same(
        lake,
        "SELECT topic, record_count, replication_min_ms, replication_avg_ms, replication_p50_ms, "
        "replication_p95_ms, replication_p99_ms, replication_max_ms, landing_min_ms, "
        "landing_avg_ms FROM replication_latency",
        [Row("orders", 40, -900, -170.0, -50, -30, -20, 10, -450, -85.0)],
    )
    same(
        lake,
        "SELECT partition, replication_avg_ms, replication_p99_ms FROM partition_minutes ORDER BY "
        "partition",
        [Row(0, -500.0, -250), Row(1, -60.0, -20)],
    )
    history.batch(0, "heartbeats", 0, 2, 1, [-5000] * 6).write()
    assert rows(lake, "flow_status")[0]["heartbeat_age_seconds"] is not None


def test_minutes_are_added_up(spark: SparkSession, tmp_path: Path) -> None:
    history = History(spark, tmp_path, NOON)
    history.batch(0, "orders", 0, 3, 600, [1, 10, 8, 20, 30, 40]).batch(
        10, "orders", 0, 2, 600, [3, 30, 25, 60, 70, 80]
    )
    history.batch(60, "orders", 0, 1, 60, [7] * 6, size=7).batch(
        1, "orders", 1, 3, 1200, [2] * 6, size=1
    )
    history.batch(2, "orders", 1, 2, 99, None)
    lake = history.write()
    same(
        lake,
        "SELECT date_format(minute, 'HH:mm') AS minute, record_count, byte_count, "
        "CAST(records_per_second AS DOUBLE) AS records, CAST(bytes_per_second AS DOUBLE) AS bytes "
        "FROM throughput ORDER BY minute",
        [Row("11:59", 60, 420, 1.0, 7.0), Row("12:00", 2499, 121_200, 41.65, 2020.0)],
    )
    same(
        lake,
        "SELECT date_format(minute, 'HH:mm') AS minute, partition, record_count, "
        "replication_min_ms, replication_avg_ms, replication_p50_ms, replication_p99_ms, "
        "replication_max_ms FROM partition_minutes ORDER BY minute, partition",
        [
            Row("11:59", 0, 60, 7, 7.0, 7, 7, 7),
            Row("12:00", 0, 1200, 1, 20.0, 25, 70, 80),
            Row("12:00", 1, 1299, 2, 2.0, 2, 2, 2),
        ],
    )
    (minute,) = rows(lake, "replication_latency", where="date_format(minute, 'HH:mm') = '12:00'")
    assert minute["replication_avg_ms"] == pytest.approx((600 * 10 + 600 * 30 + 1200 * 2) / 2400), (
        "rebuilt have none"
    )


def test_a_partition_with_gaps_is_mapped_and_not_late(history: History) -> None:
    """Every second offset is a transaction marker: 10 records up to offset 18, the end is 20."""
    history.run(5, "orders", 0, 4, 0, 100, 10, stride=2).run(3, "orders", 0, 5, 40, 120, 3)
    history.sample(FRESH, "orders", 0, 43, 43, target_end=125)
    lake = history.write()
    same(
        lake,
        "SELECT source_first, source_last, stride, target_first, target_last, record_count FROM "
        "offset_translation ORDER BY source_first",
        [Row(0, 18, 2, 100, 109, 10), Row(40, 42, 1, 120, 122, 3)],
    )
    assert rows(lake, "replication_lag", "lag_records, lag_seconds") == [
        {"lag_records": 0, "lag_seconds": 0.0}
    ]
    assert rows(lake, "partition_status", "state") == [{"state": "at the end"}]


def test_a_sample_holds_until_the_flow_was_sampled_last(history: History) -> None:
    """Nothing came to two of them for an hour; one waits since then. Of a run that ended before
    nothing holds."""
    history.sample(3500, "orders", 0, 7, 7, target_end=9).sample(3500, "orders", 1, 8, 5, 20.0)
    history.sample(FRESH, "orders", 2, 9, 9).sample(9000, "orders", 3, 9, 2, 3.0)
    lake = history.write()
    same(
        lake,
        "SELECT partition, lag_records, sampled_at = max(sampled_at) OVER () AS held, target_end, "
        "CAST(round(lag_seconds) AS INT) AS late, is_sampled FROM replication_lag ORDER BY "
        "partition",
        [
            Row(0, 0, True, 9, 0, True),
            Row(1, 3, True, None, 3565, True),
            Row(2, 0, True, None, 0, True),
        ],
    )
    assert {row["state"] for row in rows(lake, "partition_status")} == {"at the end", "behind"}


def test_an_interval_that_is_long_makes_no_flow_stand_still(history: History) -> None:
    history.sample(200, "orders", 0, 8, 5, 20.0).write()
    assert {row["state"] for row in rows(history.lake, "partition_status")} == {"not running"}
    history.sample(199, "orders", 0, 8, 5, 20.0, interval=300).write()
    assert {row["state"] for row in rows(history.lake, "partition_status")} == {"behind"}
    assert rows(history.lake, "flow_status", "state, lag_seconds") == [
        {"state": "replicating", "lag_seconds": 20.0}
    ]


def test_lag_of_a_minute_is_that_of_all_partitions_at_its_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    history = History(spark, tmp_path, NOON)
    history.sample(20, "orders", 0, 100, 10, 5.0).sample(10, "orders", 0, 100, 90, 1.5).sample(
        5, "orders", 1, 9, 2, 7.0
    )
    history.add("positions", flow=FLOW, topic="orders", partition=1, sampled_at=history.at(2))
    history.sample(-40, "orders", 0, 100, 100).sample(8 * 86_400, "orders", 0, 100, 7, 5.0)
    lake = history.write()
    same(
        lake,
        "SELECT date_format(minute, 'HH:mm') AS minute, lag_records, lag_seconds FROM lag_minutes "
        "ORDER BY minute",
        [Row("12:00", 17, 7.0), Row("12:01", 0, 0.0)],
    )


def test_a_topic_that_is_gone_is_no_lag_any_more(history: History) -> None:
    history.sample(900, "removed", 0, 100, 10, 5.0).sample(FRESH, "orders", 0, 7, 7).batch(
        950, "removed", 0, 1, 10
    )
    history.add("positions", flow=FLOW, topic="removed", partition=0, sampled_at=history.at(890))
    lake = history.write()
    assert rows(lake, "replication_lag", "topic") == [{"topic": "orders"}]
    assert rows(lake, "flow_status", "lag_records, topics") == [{"lag_records": 0, "topics": 1}]
    same(
        lake,
        "SELECT topic, state, record_count, lag_records FROM partition_status ORDER BY topic",
        [Row("orders", "at the end", 0, 0), Row("removed", "gone", 10, None)],
    )


@pytest.mark.law("nothing silently")
def test_an_open_incident_is_the_state_of_its_flow_and_partition(history: History) -> None:
    history.sample(FRESH, "orders", 0, 9, 3, 1.0).sample(FRESH, "orders", 1, 9, 9)
    common = {"flow": FLOW, "at": history.at(60), "kind": "target_refused", "topic": "orders"}
    history.add(
        "incidents", **common, partition=0, first_offset=3, last_offset=3, detail="too large"
    )
    history.add("incidents", **common, partition=1, resolved_at=history.at(10), resolution="skip")
    lake = history.write()
    assert rows(lake, "flow_status", "state, open_incidents") == [
        {"state": "incident", "open_incidents": 1}
    ]
    same(
        lake,
        "SELECT partition, state FROM partition_status ORDER BY partition",
        [Row(0, "stopped"), Row(1, "at the end")],
    )
    same(
        lake,
        "SELECT topic, partition, first_offset, detail FROM open_incidents",
        [Row("orders", 0, 3, "too large")],
    )


def test_checkpoints_tell_the_newest_and_their_latency(spark: SparkSession, tmp_path: Path) -> None:
    history = History(spark, tmp_path, NOON)
    place = {
        "flow": FLOW,
        "group_id": "billing",
        "topic": "orders",
        "partition": 0,
        "target_topic": "east.orders",
    }
    for ago, position, late in ((20.0, 5, 1.0), (10.0, 8, 3.0)):
        history.add(
            "checkpoints",
            **place,
            source_position=position,
            target_position=position + 100,
            checkpointed_at=history.at(ago),
            read_at=history.at(ago + late),
        )
    history.add(
        "checkpoints",
        **place,
        source_position=8,
        target_position=108,
        synced=True,
        checkpointed_at=history.at(5),
    )
    lake = history.write()
    same(
        lake,
        "SELECT source_position, target_position, synced FROM group_positions",
        [Row(8, 108, True)],
    )
    same(
        lake,
        "SELECT group_id, checkpoint_count, latency_min_ms, latency_avg_ms, latency_p50_ms, "
        "latency_max_ms FROM checkpoint_latency",
        [Row("billing", 2, 1000, 2000.0, 2000.0, 3000)],
    )


def test_flows_are_kept_apart(history: History) -> None:
    history.sample(FRESH, "orders", 0, 9, 9).sample(
        900, "orders", 0, 20, 3, 7.0, flow="east->north"
    )
    history.batch(FRESH, "orders", 0, 1, 9).batch(900, "orders", 0, 1, 3, flow="east->north")
    lake = history.write()
    same(
        lake,
        "SELECT flow, state, lag_records, record_count FROM flow_status ORDER BY flow",
        [Row("east->north", "not running", 17, 3), Row("east->west", "replicating", 0, 9)],
    )


def test_a_lake_of_an_earlier_version_gets_the_columns_that_it_lacks(
    spark: SparkSession, tmp_path: Path
) -> None:
    open_lake(spark, Location(path=str(tmp_path / "lake")), tmp_path)
    earlier = [field for field in definition("checkpoints").rows if field.name != "read_at"]
    shutil.rmtree(tmp_path / "lake" / "checkpoints")
    DeltaTable.create(str(tmp_path / "lake" / "checkpoints"), pa.schema(earlier))
    again = open_lake(spark, Location(path=str(tmp_path / "lake")), tmp_path)
    assert "read_at" in again.table("checkpoints").columns
    assert rows(again, "checkpoint_latency") == []
