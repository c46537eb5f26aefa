"""The view `alerts` is asked every five minutes, so it reads no more of a history than its comment
says."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from mirrorlake.lake.definitions import TABLES, rows_of, sql_text
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.path_tables import PathTables

TEXT = sql_text("views", "alerts")
#: The columns that bound what is read of a history, and the longest window that the comment names.
BOUNDS = {
    "positions": ("sampled_at", "13 HOURS"),
    "latency": ("produced_at", "1 DAY"),
    "offset_map": ("produced_at", "1 DAY"),
    "records": ("batch_id", "1 DAY"),
}
MINUTES = {"MINUTE": 1, "HOUR": 60, "DAY": 24 * 60}


def minutes(interval: exp.Interval) -> int:
    return int(interval.this.name) * MINUTES[interval.text("unit").upper().removesuffix("S")]


def windows(table: str) -> list[int | None]:
    """How far back each SELECT from a table reads, in minutes; None where nothing bounds it."""
    column, _ = BOUNDS[table]
    found: list[int | None] = []
    for select in sqlglot.parse_one(TEXT.partition(" AS\n")[2], read="databricks").find_all(
        exp.Select
    ):
        sources = [
            select.args["from_"].this,
            *(join.this for join in select.args.get("joins") or ()),
        ]
        if not any(isinstance(source, exp.Table) and source.name == table for source in sources):
            continue
        where = select.args.get("where")
        bounds = [
            minutes(interval)
            for item in (where.find_all(exp.GTE) if where is not None else ())
            if item.this.name == column and not item.find_ancestor(exp.Or)
            for interval in item.expression.find_all(exp.Interval)
        ]
        found.append(min(bounds, default=None))
    return found


@pytest.mark.parametrize("table", BOUNDS)
def test_no_history_is_read_without_a_bound(table: str) -> None:
    longest = minutes(sqlglot.parse_one(f"INTERVAL {BOUNDS[table][1]}", read="databricks"))
    found = windows(table)
    assert found and all(window is not None and window <= longest for window in found), found


def test_the_comment_names_the_windows() -> None:
    assert "samples of 13 hours, the latencies of a day, the map of a day" in TEXT


@pytest.mark.parametrize(
    ("started", "sampled", "said"),
    [
        (30.0, 1.0, 1.0),  # hours ago; the last sample is in the window
        (30.0, 20.0, 13.0),  # it is before the window, which is all that is known then
        (0.5, 20.0, 0.5),  # samples of an earlier run say nothing of this one
    ],
)
def test_since_when_a_flow_does_not_run(
    tmp_path: Path, started: float, sampled: float, said: float
) -> None:
    tables, now = PathTables(tmp_path), datetime.now(timezone.utc)
    for table in TABLES:
        tables.create(table)
    objectives = {
        "flow": "east->west",
        "lag_seconds": 60,
        "latency_p99_ms": 5000,
        "heartbeat_seconds": 60,
        "stuck_seconds": 600,
        "enabled": True,
        "heartbeats": False,
        "gaps": False,
        "mode": "continuous",
        "since": now - timedelta(hours=started),
    }
    sample = {
        "flow": "east->west",
        "topic": "orders",
        "partition": 0,
        "sampled_at": now - timedelta(hours=sampled),
        "produced_end": 1,
        "source_end": 1,
        "lag_records": 0,
        "lag_seconds": 0.0,
    }
    tables.append("objectives", rows_of("objectives", [objectives]))
    tables.append("positions", rows_of("positions", [sample]))
    lake = DuckLake(tmp_path, None)
    lake.refresh()
    (alert,) = lake.table_rows("alerts")
    assert alert["alert"] == "not_running" and said * 3600 <= alert["value"] < said * 3600 + 60
