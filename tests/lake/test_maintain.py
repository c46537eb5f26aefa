"""`maintain` on lakes without Kafka: what it deletes, what it must not, and that it keeps tables
small."""

import json
import os
import shutil
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.config.lake import Maintenance
from mirrorlake.groups.checkpoint_table import deleted_before, positions_as_of
from mirrorlake.lake import table_upkeep
from mirrorlake.lake.definitions import TABLES, sql_text
from mirrorlake.lake.delta_log import DeltaLog
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.maintain import maintain
from mirrorlake.lake.place import place_of
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.stage_sources import SparkStage, readable_by_files
from mirrorlake.lake.targets import note_targets
from mirrorlake.lake.translate import translate
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.offsets.stage_index import StageIndex
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    commit,
    no_session,
    now_of,
    opened,
    run_row,
    sample,
    staged,
    write_file,
)

DAY = 86_400
ORDERS = "SELECT * FROM records WHERE topic = 'orders'"
WEEK = Maintenance(retention_days=7)


def offsets(lake: Lake, **where: object) -> list[int]:
    rows = now_of(lake).table_rows("records")
    return sorted(
        row["offset"] for row in rows if all(row[name] == value for name, value in where.items())
    )


def test_a_flow_that_is_paused_for_longer_than_the_retention_keeps_its_records(
    tmp_path: Path,
) -> None:
    flows = {FLOW: {}, "east->north": {"paused": True, "topics": ["orders"]}}
    lake, topology = opened(no_session, write_file(tmp_path, flows=flows))
    for topic in ("orders", "payments"):
        append(lake, "records", staged(range(100), 30 * DAY, topic=topic))
        append(lake, "records", staged(range(100, 120), DAY, topic=topic))
        append(lake, "offset_map", [run_row(0, 119, topic=topic)])
    append(lake, "offset_map", [run_row(0, 39, 20 * DAY, flow="east->north")])
    kept = now_of(lake).rows(f"{ORDERS} AND offset >= 40 ORDER BY offset")

    report = maintain(lake, topology, WEEK)

    assert offsets(lake, topic="orders") == list(range(40, 120))
    assert offsets(lake, topic="payments") == list(range(100, 120))
    assert report["records"]["removed"] == 140
    assert report["records"]["held"] == [
        {"flow": "east->north", "topic": "orders", "partition": 0, "generation": 0, "offset": 40}
    ]
    assert now_of(lake).rows(f"{ORDERS} ORDER BY offset") == kept
    assert maintain(lake, topology, WEEK)["records"]["removed"] == 0


def test_a_flow_that_has_never_run_holds_everything_back(tmp_path: Path) -> None:
    lake, topology = opened(no_session, write_file(tmp_path, flows={FLOW: {}, "east->north": {}}))
    append(lake, "records", staged(range(50), 30 * DAY))
    append(lake, "offset_map", [run_row(0, 49)])
    assert maintain(lake, topology, WEEK)["records"]["removed"] == 0
    disabled = opened(
        no_session, write_file(tmp_path, flows={FLOW: {}, "east->north": {"enabled": False}})
    )[1]
    assert maintain(lake, disabled, WEEK)["records"]["removed"] == 49
    assert offsets(lake) == [49], (
        "landing goes on behind the newest record when its checkpoint is lost"
    )


def test_a_disabled_flow_holds_records_for_the_time_that_the_file_says(tmp_path: Path) -> None:
    lake, topology = opened(
        no_session, write_file(tmp_path, flows={FLOW: {}, "east->north": {"enabled": False}})
    )
    for first, days in ((0, 40), (50, 20), (80, 1)):
        append(lake, "records", staged(range(first, first + 30), days * DAY))
    append(lake, "offset_map", [run_row(0, 109), run_row(0, 9, flow="east->north")])
    report = maintain(lake, topology, Maintenance(retention_days=7, disabled_hold_days=30))
    assert offsets(lake) == list(range(50, 110)), "of those of 40 days ago it lacks 10 to 29"
    assert [(retained["flow"], retained["offset"]) for retained in report["records"]["held"]] == [
        ("east->north", 30)
    ]
    assert removals(lake) == [("orders", 0, 0, 30)]
    maintain(lake, topology, Maintenance(retention_days=7, disabled_hold_days=0))
    assert offsets(lake) == list(range(80, 110)) and removals(lake) == [("orders", 0, 0, 80)]


def removals(lake: Lake) -> list[tuple[object, ...]]:
    """What is noted of deleted records."""
    columns = ("topic", "partition", "first_offset", "below")
    return [tuple(row[name] for name in columns) for row in now_of(lake).table_rows("removals")]


def test_what_a_target_topic_that_was_made_again_is_to_get_stays(tmp_path: Path) -> None:
    lake, topology = opened(no_session, write_file(tmp_path))
    append(lake, "records", staged(range(50), 30 * DAY))
    append(lake, "offset_map", [run_row(0, 49)])
    for number in (0, 1):
        note_targets(
            lake,
            FLOW,
            {("orders", "east.orders"): NotedTarget(number, f"id-{number}", "stage", (0,))},
        )
    assert maintain(lake, topology, WEEK)["records"]["removed"] == 0


def test_without_a_retention_no_record_goes(tmp_path: Path) -> None:
    lake, topology = opened(no_session, write_file(tmp_path))
    append(lake, "records", staged(range(5), 900 * DAY))
    append(lake, "offset_map", [run_row(0, 4)])
    assert maintain(lake, topology, topology.maintain)["records"] == {
        "before": None,
        "removed": 0,
        "held": [],
        "forgotten": [],
    }
    assert offsets(lake) == [0, 1, 2, 3, 4]


def test_history_goes_by_age_but_the_newest_of_each_stays(tmp_path: Path) -> None:
    """The first sample of each partition stays, too: by it landing knows where a log began."""
    lake, topology = opened(no_session, write_file(tmp_path))
    append(lake, "positions", [sample(age * DAY, age, 400) for age in (300, 200, 5)])
    append(lake, "positions", [sample(age * DAY, age, 400, partition=1) for age in (300, 200)])
    group = {"flow": FLOW, "group_id": "g", "topic": "orders", "partition": 0, "source_position": 1}
    append(
        lake, "checkpoints", [{**group, "checkpointed_at": ago(age * DAY)} for age in (300, 200)]
    )
    late = {"flow": FLOW, "batch_id": 1, "topic": "orders", "partition": 0, "record_count": 1}
    append(lake, "latency", [{**late, "produced_at": ago(age * DAY)} for age in (300, 5)])
    change = {"flow": FLOW, "kind": "topic", "resource": "orders", "outcome": "done"}
    append(lake, "changes", [{**change, "at": ago(age * DAY)} for age in (300, 200)])
    over = {
        "flow": FLOW,
        "at": ago(300 * DAY),
        "kind": "flow_waits",
        "resolution": "it came through again",
    }
    append(lake, "incidents", [{**over, "resolved_at": ago(age * DAY)} for age in (200, 5)])
    report = maintain(lake, topology, Maintenance(history_days=90))
    assert report["history"] == {
        "latency": 1,
        "positions": 1,
        "checkpoints": 1,
        "changes": 1,
        "incidents": 1,
    }
    left = {(row["partition"], row["produced_end"]) for row in now_of(lake).table_rows("positions")}
    assert left == {(0, 300), (0, 5), (1, 300), (1, 200)}


def test_where_groups_stood_is_known_for_all_days_that_history_is_kept(tmp_path: Path) -> None:
    """A group that rests for months has one checkpoint for all of them: as of each day since then,
    also once it has moved, `restore` goes by it."""
    lake, topology = opened(no_session, write_file(tmp_path))
    group = {"flow": FLOW, "group_id": "g", "topic": "orders", "partition": 0}
    moves = {300: 1, 200: 2, 5: 3}  # days ago: position
    append(
        lake,
        "checkpoints",
        [
            {**group, "source_position": position, "checkpointed_at": ago(days * DAY)}
            for days, position in moves.items()
        ],
    )

    def stood(days: int) -> int:
        at = int(ago(days * DAY).timestamp() * 1_000)
        return positions_as_of(now_of(lake), "east", at)["g", "orders", 0][0].offset

    for _ in range(2):
        maintain(lake, topology, Maintenance(history_days=90))
        until = deleted_before(EventLog(lake))
        assert until is not None and abs(until - ago(90 * DAY)) < timedelta(minutes=5)
        assert [stood(days) for days in (89, 6, 4)] == [2, 2, 3]
    assert now_of(lake).rows("SELECT count(*) AS n FROM checkpoints") == [{"n": 2}]


def test_old_samples_are_thinned_to_minutes_and_hours(tmp_path: Path) -> None:
    """By the clock, not by age; of each slot the newest stays, and so does the first sample of each
    partition."""
    lake, topology = opened(no_session, write_file(tmp_path))
    hour = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0)

    def at(days: int, *seconds: int, **more: object) -> list[dict[str, object]]:
        moments = [hour - timedelta(days=days) + timedelta(seconds=second) for second in seconds]
        return [{**sample(0, days, 400), "sampled_at": moment, **more} for moment in moments]

    rows = [*at(9, 10, 20, 70, 3590, 3610), *at(3, 10, 20, 50, 70), *at(0, -300, -295, -290)]
    # it was lost, and is for good
    rows += at(9, 100, partition=1) + at(9, 200, 300, partition=1, source_end=None)
    rows += [*at(9, 5, 15, 25, partition=2)]
    append(lake, "positions", rows)
    assert maintain(lake, topology, Maintenance())["thinned"] == 5
    left = [
        (
            row["partition"],
            row["produced_end"],
            (row["sampled_at"].replace(tzinfo=timezone.utc) - hour).total_seconds(),
        )
        for row in DuckLake(tmp_path / "lake").table_rows("positions")
    ]
    day = 86_400
    assert sorted(left) == sorted(
        [(0, 9, second - 9 * day) for second in (10, 3590, 3610)]
        + [(0, 3, second - 3 * day) for second in (50, 70)]
        + [(0, 0, float(second)) for second in (-300, -295, -290)]
        + [(1, 9, second - 9 * day) for second in (100, 200, 300)]
        + [(2, 9, second - 9 * day) for second in (5, 25)]
    )
    assert maintain(lake, topology, Maintenance())["thinned"] == 0
    position = translate(now_of(lake), FLOW, "orders", 0, 0)
    assert (position.topic, position.exact) == ("east.orders", True)


def test_vanished_records_are_not_called_missing(tmp_path: Path) -> None:
    lake, topology = opened(no_session, write_file(tmp_path))
    append(lake, "records", staged(range(100), 30 * DAY))
    append(lake, "offset_map", [run_row(0, 99, 30 * DAY)])
    append(lake, "positions", [sample(5, 100, 100)])
    maintain(lake, topology, WEEK)
    assert now_of(lake).table_rows("divergence") == []
    assert now_of(lake).table_rows("alerts") == []
    position = translate(now_of(lake), FLOW, "orders", 0, 12)
    assert (position.offset, position.exact) == (12, True)


@pytest.mark.slow
def test_the_index_that_follows_commits_is_the_one_built_from_the_snapshot(
    spark: SparkSession, tmp_path: Path
) -> None:
    flows = {FLOW: {}, "east->north": {"paused": True}}
    lake, topology = opened(spark, write_file(tmp_path, flows=flows))
    append(
        lake, "records", staged(range(10), 30 * DAY) + staged(range(10), 30 * DAY, topic="payments")
    )
    append(lake, "offset_map", [run_row(0, 9), run_row(0, 4, flow="east->north")])
    before = lake.version_of("records")
    follower = StageFiles(lake)
    with follower.reading() as followed:
        assert followed.version == before
    maintain(lake, topology, WEEK)  # rewrites the file: 0 to 4 go, the rest waits for east->north
    append(lake, "records", staged(range(10, 12), 5))
    assert offsets(lake, topic="orders") == list(range(5, 12))
    with follower.reading() as followed:
        assert followed.version > before + 1
    by_file, by_spark = StageFiles(lake), SparkStage(lake).build(StageIndex())
    with by_file.reading() as index:
        assert (
            index.ends("east")
            == by_spark.ends("east")
            == {("orders", 0): (0, 12), ("payments", 0): (0, 10)}
        )
        assert sorted(map(str, index.rows())) == sorted(map(str, followed.rows()))


def test_a_forgotten_commit_is_not_taken_for_one_to_come(tmp_path: Path) -> None:
    lake, _ = opened(no_session, write_file(tmp_path))
    log = DeltaLog(place_of(tmp_path / "lake" / "records"))
    assert log.commit(1) is None
    append(lake, "records", staged(range(3)))
    (tmp_path / "lake" / "records" / "_delta_log" / "_last_checkpoint").write_text(
        json.dumps({"version": 100})
    )
    (tmp_path / "lake" / "records" / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(FileNotFoundError):
        log.commit(1)
    assert log.commit(101) is None


def test_files_stay_readable_by_workers(tmp_path: Path) -> None:
    lake, topology = opened(no_session, write_file(tmp_path))
    append(lake, "records", staged(range(100), 30 * DAY))
    append(lake, "offset_map", [run_row(0, 49)])
    maintain(lake, topology, WEEK)
    assert readable_by_files(lake)
    log = "".join(
        path.read_text() for path in (tmp_path / "lake" / "records" / "_delta_log").glob("*.json")
    )
    assert '"deletionVector"' not in log and "columnMapping" not in log and '"remove"' in log


def test_files_of_attempts_that_died_go_and_those_of_a_batch_on_its_way_stay(
    tmp_path: Path,
) -> None:
    """Those of a batch that is on its way are young."""
    lake, topology = opened(no_session, write_file(tmp_path))
    append(lake, "records", staged(range(10), 3600))
    records = tmp_path / "lake" / "records"
    dead, young = records / "task-dead.snappy.parquet", records / "task-young.snappy.parquet"
    for orphan in (dead, young):
        shutil.copy(next(records.glob("part-*.parquet")), orphan)
    long_ago = time.time() - 60 * DAY
    os.utime(dead, (long_ago, long_ago))
    maintain(lake, topology, WEEK)
    assert not dead.exists() and young.exists()
    assert offsets(lake) == list(range(10))


def test_tables_are_made_with_the_settings_that_maintain_wants(tmp_path: Path) -> None:
    lake, topology = opened(no_session, write_file(tmp_path))
    assert table_upkeep.apply_settings(lake) == {}
    for table, wanted in table_upkeep.SETTINGS.items():
        assert all(
            f"'{key}' = '{value}'" in sql_text("tables", table) for key, value in wanted.items()
        )
    lake.upkeep("records").set_properties({"delta.appendOnly": "true"})
    assert table_upkeep.apply_settings(lake, dry_run=True) == {
        "records": {"delta.appendOnly": "false"}
    }
    assert maintain(lake, topology, WEEK)["settings"] == {"records": {"delta.appendOnly": "false"}}
    assert table_upkeep.apply_settings(lake) == {}


def test_the_command_says_what_it_did_and_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    file = write_file(tmp_path, maintain={"retention_days": 365})
    lake, _ = opened(no_session, file)
    append(lake, "records", staged(range(100), 30 * DAY))
    append(lake, "offset_map", [run_row(0, 99)])
    command = ["-c", str(file), "maintain", "--json", "--retention-days", "7"]
    versions = {table: lake.version_of(table) for table in TABLES}
    said = json.loads(CliRunner().invoke(app, [*command, "--dry-run"]).stdout)
    assert said["records"]["removed"] == 99 and said["dry_run"]
    assert versions == {table: lake.version_of(table) for table in TABLES}
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0 and json.loads(done.stdout)["records"]["removed"] == 99
    assert set(json.loads(done.stdout)["tables"]) == set(TABLES)
    assert (
        json.loads(CliRunner().invoke(app, ["-c", str(file), "maintain", "--json"]).stdout)[
            "records"
        ]["removed"]
        == 0
    )
    changes = [
        (row["kind"], row["after"])
        for row in now_of(lake).rows("SELECT * FROM changes ORDER BY at")
    ]
    assert [kind for kind, _ in changes] == ["retention", "maintain", "maintain"], (
        "each run is noted"
    )
    assert changes[0][1].startswith("99 records landed before")
    assert changes[1][1].startswith("99 records and 0 rows of history deleted")


@pytest.mark.slow
def test_files_and_bytes_stay_bounded_over_days(tmp_path: Path) -> None:
    """Batches of days as landing, producing and control append them, and maintenance after each
    day."""
    days, batches = 6, 60
    lake, topology = opened(no_session, write_file(tmp_path))
    most: dict[str, int] = dict.fromkeys(TABLES, 0)
    disk: list[int] = []
    for day in range(days):
        for batch in range(day * batches, (day + 1) * batches):
            age = (days - day) * DAY
            commit(lake, "records", staged(range(batch * 20, batch * 20 + 20), age))
            commit(lake, "offset_map", [run_row(batch * 20, batch * 20 + 19, age)])
            if batch % 10 == 0:
                commit(lake, "positions", [sample(age, batch * 20, batch * 20)])
        maintain(lake, topology, Maintenance(retention_days=3, history_days=3))
        for table in ("records", "offset_map", "positions"):
            lake.upkeep(table).vacuum(0)
        sizes_found = table_upkeep.sizes(lake)
        most = {table: max(most[table], sizes_found[table].files) for table in TABLES}
        disk.append(
            sum(path.stat().st_size for path in (tmp_path / "lake" / "records").glob("*.parquet"))
        )
    assert max(most.values()) <= 2
    assert (
        offsets(lake)[0] >= (days - 4) * batches * 20
        and offsets(lake)[-1] == days * batches * 20 - 1
    )
    # What is past the retention leaves nothing behind, and each day that is kept adds what one day
    # takes.
    assert max(disk[:-2]) < 1.1 * disk[0] and disk[-1] - disk[-2] < 1.1 * (disk[-2] - disk[-3]), (
        disk
    )
    total = "SELECT sum(record_count) AS n FROM offset_map"
    assert now_of(lake).rows(total) == [{"n": days * batches * 20}]


@pytest.mark.slow
@pytest.mark.matrix(lake="catalog")
def test_a_lake_in_a_catalog(spark: SparkSession, tmp_path: Path) -> None:
    """What a workspace has, by a stand-in: a catalog and a schema, and no directory of its own."""
    location = {
        "catalog": "spark_catalog",
        "schema": "upkeep",
        "checkpoints": str(tmp_path / "checkpoints"),
    }
    lake, topology = opened(spark, write_file(tmp_path, lake=location))
    try:
        assert lake.directory is None
        append(lake, "records", staged(range(100), 30 * DAY))
        append(lake, "offset_map", [run_row(0, 99)])
        assert maintain(lake, topology, WEEK)["records"]["removed"] == 99
        assert spark.table("spark_catalog.upkeep.alerts").count() == 0, (
            "views are there for other readers"
        )
        again, _ = opened(spark, tmp_path / "mirrorlake.yml")
        assert again.schema == lake.schema and offsets(again) == [99]
    finally:
        spark.sql("DROP SCHEMA spark_catalog.upkeep CASCADE")
        shutil.rmtree(tmp_path / "checkpoints", ignore_errors=True)
