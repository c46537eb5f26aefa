"""Statements that change rows: by DuckDB and delta-rs as by Spark, beside other writers."""

import json
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake.definitions import definition, rows_of, sql_text
from mirrorlake.lake.duck_changes import RowChange
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.reader import Frame

AT = datetime(2026, 11, 23, tzinfo=timezone.utc)
SEEN = Frame(
    "alias STRING, cluster_id STRING, seen TIMESTAMP",
    [(*pair, AT + timedelta(hours=1)) for pair in (("east", "id-1"), ("west", "id-2"))],
)
_COLUMNS = [
    column
    for column in definition("objectives").columns
    if column.name not in ("since", "noted_at", "heartbeat_topics")
]
NOW = Frame(
    ", ".join(f"{column.name} {column.spark_type}" for column in _COLUMNS),
    [
        ("a->b", 60, 5_000, 60, 300, True, None, True, True, None, 60),
        ("c->d", 1, 1, 1, 1, False, "x", False, False, "once", 1),
    ],
)
INCIDENTS: list[dict[str, Any]] = [
    {
        "flow": "a->b",
        "at": AT,
        "kind": "target_refused",
        "topic": "t",
        "partition": 0,
        "first_offset": 1,
    },
    {
        "flow": "a->b",
        "at": AT,
        "kind": "target_refused",
        "topic": "t",
        "partition": 0,
        "resolution": "stop",
    }
    | {"resolved_at": AT},
    {"flow": "a->b", "at": AT, "kind": "flow_stopped", "topic": None, "partition": None},
    {"flow": "a->b", "at": AT, "kind": "target_recreated", "topic": "t", "target_generation": 1},
]
OVER = {"resolution": "over"}


def settled(
    *keys: tuple[str, str | None, int | None], mirrors: tuple[str | None, ...] = ()
) -> dict[str, Frame]:
    """Kinds, topics and partitions that are closed, of any mirror or of these."""
    columns = (
        "flow STRING, kind STRING, topic STRING, partition INT, generation INT, "
        "of_mirror BOOLEAN, target_topic STRING, target_generation INT, behind TIMESTAMP"
    )
    named = [(True, mirror, None) for mirror in mirrors] or [(False, None, None)]
    rows = [("a->b", *key, 0, *mirror, None) for key in keys for mirror in named]
    return {"settled": Frame(columns, rows)}


def run(first: int, *segments: tuple[int, int, int, int], partition: int = 0) -> dict[str, Any]:
    """A row of the map; segments are (source first, stride, target first, count)."""
    parts = [
        dict(zip(("source_first", "stride", "target_first", "record_count"), one, strict=True))
        for one in segments
    ]
    source, stride, target, count = segments[-1]
    ends = {"source_last": source + (count - 1) * stride, "target_last": target + count - 1}
    place = {
        "flow": "a->b",
        "topic": "t",
        "partition": partition,
        "target_topic": "t",
        "target_partition": partition,
    }
    counts = {"record_count": sum(one[3] for one in segments), "batch_id": first, "segments": parts}
    return {
        **place,
        "source_first": segments[0][0],
        "target_first": segments[0][2],
        **ends,
        **counts,
    }


MAPPED = [
    run(1, (0, 1, 0, 10)),
    run(2, (10, 2, 11, 4), (18, 2, 16, 6)),
    run(3, (30, 1, 30, 2)) | {"target_generation": 0},
    run(4, (30, 1, 30, 2), partition=1),
]


def lost(*places: tuple[int, int]) -> dict[str, Frame]:
    """Target offsets from which on partitions have lost all."""
    columns = (
        "topic STRING, partition INT, target_topic STRING, target_generation INT, "
        "target_offset BIGINT"
    )
    return {"lost": Frame(columns, [("t", number, "t", 0, offset) for number, offset in places])}


OF_FLOW = {"flow": "a->b"}
NOTED = Frame(
    "topic STRING, target_topic STRING, target_generation INT", [("t", "a.t", 1), ("u", "a.u", 0)]
)
CASES: dict[str, tuple[str, list[dict[str, Any]], dict[str, Frame], dict[str, Any]]] = {
    "a new cluster": ("clusters_seen", [], {"seen": SEEN}, {}),
    "a known one": (
        "clusters_seen",
        [{"alias": "east", "cluster_id": "id-1", "first_seen": AT, "last_seen": AT}],
        {"seen": SEEN},
        {},
    ),
    "objectives": (
        "note_objectives",
        [{"flow": "a->b", "enabled": True, "mode": "continuous", "since": AT, "noted_at": AT}],
        {"objectives_now": NOW},
        {},
    ),
    "a refusal settled": (
        "settle_incidents",
        INCIDENTS,
        settled(("target_refused", "t", 0), ("target_refused", "t", 1)),
        OVER,
    ),
    "one of a mirror": (
        "settle_incidents",
        [*INCIDENTS, {**INCIDENTS[0], "target_topic": "a.t"}],
        settled(("target_refused", "t", 0), mirrors=("a.t", "t")),
        OVER,
    ),
    "one without a topic": (
        "settle_incidents",
        INCIDENTS,
        settled(("flow_stopped", None, None)),
        OVER,
    ),
    "nothing to settle": ("settle_incidents", INCIDENTS, settled(("no", None, None)), OVER),
    "the end of a segment lost": ("cut_map", MAPPED, lost((0, 18)), OF_FLOW),
    "whole segments lost": ("cut_map", MAPPED, lost((0, 15), (1, 31)), OF_FLOW),
    "unfounded targets": ("close_unfounded_targets", INCIDENTS, {"noted": NOTED}, OF_FLOW),
}


#: Each statement once, of which `make test` has the first; the others are slow.
ONE_OF_EACH = (
    "a refusal settled",
    "a known one",
    "objectives",
    "the end of a segment lost",
    "unfounded targets",
)


def test_a_map_is_cut_at_a_target_offset(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(spark, Location(path=str(tmp_path / "lake")), tmp_path)
    lake.append("offset_map", rows_of("offset_map", MAPPED))
    for _ in range(2):  # doing it again changes nothing
        lake.change("cut_map", lost((0, 18)), **OF_FLOW)
        rows = sorted(
            lake.ask_table("offset_map"), key=lambda row: (row["partition"], row["source_first"])
        )
        found = [
            (row["source_last"], row["target_last"], row["record_count"], len(row["segments"]))
            for row in rows
        ]
        assert found == [(9, 9, 10, 1), (20, 17, 6, 2), (31, 31, 2, 1)]


@pytest.mark.parametrize(
    "case",
    [
        ONE_OF_EACH[0],
        *(
            pytest.param(case, marks=pytest.mark.wide("test_both_engines_make_the_same_rows"))
            for case in ONE_OF_EACH[1:]
        ),
        *(pytest.param(case, marks=pytest.mark.slow) for case in CASES if case not in ONE_OF_EACH),
    ],
)
def test_both_engines_make_the_same_rows(spark: SparkSession, tmp_path: Path, case: str) -> None:
    query, rows, frames, args = CASES[case]
    found = []
    for name in ("duckdb", "spark"):
        lake = open_lake(spark, Location(path=str(tmp_path / name)), tmp_path)
        table = RowChange(sql_text("queries", query), args, frames).table
        if rows:
            lake.append(table, rows_of(table, rows))
        if name == "duckdb":
            lake.change(query, frames, **args)
        else:
            lake.rows(sql_text("queries", query), args, frames)
        now = lake.ask_table(table)
        stamps = {
            key: {row[key] for row in now if row[key]} - {AT.replace(tzinfo=None)}
            for key in _stamps(now)
        }
        assert all(len(values) <= 1 for values in stamps.values())
        found.append(
            sorted(json.dumps(_without_now(row), sort_keys=True, default=str) for row in now)
        )
    assert found[0] == found[1]
    assert found[0] or query != "clusters_seen"


def _stamps(rows: list[dict[str, Any]]) -> list[str]:
    return [key for key, value in (rows[0].items() if rows else ()) if isinstance(value, datetime)]


def _without_now(row: dict[str, Any]) -> dict[str, Any]:
    """Times other than the one that was given are said to be now."""
    known = AT.replace(tzinfo=None)
    return {
        key: "now" if isinstance(value, datetime) and value != known else value
        for key, value in row.items()
    }


def test_what_others_append_and_change_meanwhile_is_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = open_lake(spark, Location(path=str(tmp_path / "lake")), tmp_path)
    lake.append("incidents", rows_of("incidents", INCIDENTS))
    other = PathTables(tmp_path / "lake")
    text, asked = sql_text("queries", "settle_incidents"), []

    def while_somebody_writes(rows: Any) -> Any:
        if not asked:
            other.append(
                "incidents", rows_of("incidents", [{**INCIDENTS[2], "kind": "flow_waits"}])
            )
            _settle(lake, "flow_stopped")
        asked.append(len(rows))
        return RowChange(text, OVER, settled(("target_refused", "t", 0))).applied_to(rows)

    PathTables(tmp_path / "lake").rewrite("incidents", while_somebody_writes)
    kinds = {(row["kind"], row["resolution"]) for row in lake.ask_table("incidents")}
    assert kinds == {
        ("target_refused", "over"),
        ("flow_stopped", "over"),
        ("target_recreated", None),
        ("flow_waits", None),
    }
    assert len(asked) == 2, "it was asked again on top of what the other one made"


def _settle(lake: Lake, kind: str) -> None:
    frames = settled((kind, None, None))
    thread = threading.Thread(target=lambda: lake.change("settle_incidents", frames, **OVER))
    thread.start()
    thread.join()
