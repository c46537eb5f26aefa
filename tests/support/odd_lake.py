"""A small lake of what is rare: two generations of topics here and there, gaps in the map, nulls
wherever a column may have one, texts beyond ASCII, ties, and numbers that are rounded. All times
are told from `END`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import cast

import pyarrow as pa
from pyspark.sql import SparkSession

from mirrorlake.lake.definitions import definition
from mirrorlake.lake.lake import Lake
from tests.support.sample_lake import empty_lake

END = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=timezone.utc)
FLOW, BACK = "east->west", "west->east"
TOPICS = ("orders", "größe.тема-日本")
PROVENANCE = "mirrorlake-provenance"
Rows = Sequence[Mapping[str, object]]
_ACL = ("pattern", "name", "principal", "host", "operation", "permission")


def odd_lake(spark: SparkSession, directory: Path) -> Lake:
    """Make it in `directory`/lake."""
    lake = empty_lake(spark, directory)
    for table, rows in {
        "records": _records(),
        "offset_map": _offset_map(),
        "latency": _latency(),
        "positions": _positions(),
        "checkpoints": _checkpoints(),
        "incidents": _incidents(),
        "changes": _changes(),
        "clusters": _clusters(),
        "generations": _generations(),
        "target_generations": _target_generations(),
        "objectives": _objectives(),
        "states": _states(),
        "removals": _removals(),
        "audits": _audits(),
        "parked": _parked(),
        "forgotten": _forgotten(),
        "starts": _starts(),
    }.items():
        _append(lake, table, rows)
    return lake


def ago(seconds: float) -> datetime:
    """So many seconds before the end."""
    return END - timedelta(seconds=seconds)


def _append(lake: Lake, table: str, rows: Rows) -> None:
    schema = definition(table).rows
    assert not {name for row in rows for name in row} - set(schema.names), table
    plain = [
        {name: _as(schema.field(name).type, value) for name, value in row.items()} for row in rows
    ]
    lake.append(table, pa.Table.from_pylist(plain, schema))


def _as(kind: pa.DataType, value: object) -> object:
    """A value as Arrow takes it: fields of a struct by name, entries of a map as pairs."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_as(kind.value_type, item) for item in cast("list[object]", value)]
    if pa.types.is_map(kind):
        return list(cast("dict[str, object]", value).items())
    if pa.types.is_struct(kind):
        return dict(zip((field.name for field in kind), cast("tuple[object]", value), strict=True))
    return value


def _audits() -> Rows:
    """Ranges that were compared twice, the second time in part, differently, or at the same
    moment; of one the target topic is not named."""
    rows: list[dict[str, object]] = []
    verdicts = [
        (0, 99_999, "proven", 900),
        (100_000, 140_000, "content", 890),
        (100_000, 199_999, "source_trimmed", 50),
        (50, 80, "missing_at_target", 400),
        (80, 90, "proven", 300),
        (0, 3, None, 200),
        (200_000, 200_000, "proven", 9),
    ]
    for topic in TOPICS:
        for generation in (None, 1):
            for first, last, verdict, seconds in verdicts:
                rows.append(
                    {
                        "flow": FLOW,
                        "topic": topic,
                        "partition": 0,
                        "target_topic": f"east.{topic}" if first < 200_000 else None,
                        "first_offset": first,
                        "last_offset": last,
                        "stage_count": (last - first) // 2 + 1,
                        "verdict": verdict,
                        "audited_at": ago(seconds),
                        "generation": 0,
                        "target_generation": generation,
                        "target_last_offset": last + 7,
                        "excused": {"echo": 2},
                        "differences": [("content", first, last, 1, None, "ü")] if first else [],
                    }
                )
    return rows


def _records() -> Rows:
    rows: list[dict[str, object]] = []
    for topic in TOPICS:
        for generation in (None, 1):
            for offset in [*range(0, 40, 2), *range(41, 60)]:
                headers = (
                    None
                    if offset % 3 == 0
                    else [(PROVENANCE, b"west-id")]
                    if offset % 7 == 0
                    else [("k", None)]
                )
                late = offset // 55 * (offset % 5 + 1)
                rows.append(
                    {
                        "source_cluster": "east",
                        "topic": topic,
                        "partition": offset % 2,
                        "offset": offset,
                        "timestamp": ago(30 if late > 3 else 3000 - offset),
                        "timestamp_type": 0,
                        "key": None if offset % 5 else b"k\xc3\xa9",
                        "value": None if offset % 4 else "wert ü".encode(),
                        "headers": headers,
                        "landed_at": None if offset == 8 else ago(2990 - offset * 1.5),
                        "batch_id": int(ago(60 + late if late else 2990).timestamp() * 1000),
                        "generation": generation,
                        "batch_end": None if offset < 20 else 60,
                        "open_ends": "[]" if late else None,
                    }
                )
    return rows


def _run(
    topic: str, partition: int, segments: Sequence[tuple[int, int, int, int]], **more: object
) -> dict[str, object]:
    first, last = segments[0], segments[-1]
    return {
        "flow": FLOW,
        "topic": topic,
        "partition": partition,
        "target_topic": f"east.{topic}",
        "target_partition": partition,
        "source_first": first[0],
        "source_last": last[0] + (last[3] - 1) * last[1],
        "target_first": first[2],
        "target_last": last[2] + last[3] - 1,
        "produced_at": ago(900),
        "batch_id": 17,
        "record_count": sum(segment[3] for segment in segments),
        "segments": list(segments),
        **more,
    }


def _offset_map() -> Rows:
    orders, odd = TOPICS
    return [
        _run(orders, 0, [(0, 2, 5, 10), (22, 2, 15, 4)]),
        _run(orders, 0, [(34, 2, 30, 2)], batch_id=18, produced_at=ago(100)),
        _run(orders, 1, [(41, 2, 0, 3)], first_batch_id=3, generation=0),
        _run(
            orders,
            0,
            [(0, 2, 40, 5)],
            generation=1,
            target_generation=0,
            batch_id=20,
            produced_at=None,
        ),
        _run(
            orders,
            0,
            [(10, 1, 50, 8)],
            generation=1,
            target_generation=0,
            batch_id=21,
            produced_at=ago(7),
        ),
        _run(odd, 0, [(0, 4, 0, 9)], target_generation=0),
        _run(odd, 0, [(0, 2, 0, 9)], target_generation=1, batch_id=30),
        _run(odd, 1, [(41, 2, 3, 4)], target_generation=1, batch_id=30),
        {**_run(orders, 2, [(0, 1, 7, 3)]), "flow": BACK, "target_topic": "west.orders"},
    ]


def _latency() -> Rows:
    rows: list[dict[str, object]] = []
    for number, topic in enumerate((*TOPICS, "heartbeats")):
        for step, count in enumerate((1, 3, 0, 2, 100, None)):
            known = step != 3
            rows.append(
                {
                    "flow": FLOW,
                    "batch_id": step,
                    "topic": topic,
                    "partition": step % 2,
                    "record_count": count,
                    "byte_count": None if count is None else count * 7,
                    "produced_at": ago(13.5 + step * 47 + number),
                    **{
                        f"{name}_{kind}_ms": (step + 1) * 37 * (number + 1) + at if known else None
                        for name in ("landing", "replication")
                        for at, kind in enumerate(("min", "p50", "p95", "p99", "max"))
                    },
                    **{
                        f"{name}_avg_ms": step * 41.25 if known else None
                        for name in ("landing", "replication")
                    },
                }
            )
    rows.append(
        {
            "flow": BACK,
            "batch_id": 1,
            "topic": "orders",
            "partition": 2,
            "record_count": 1,
            "byte_count": 0,
        }
    )
    return rows


def _positions() -> Rows:
    rows: list[dict[str, object]] = []
    for topic in TOPICS:
        for partition in (0, 1, 2):
            for step, seconds in enumerate((1200, 80, 40, 8.25)):
                rows.append(
                    {
                        "flow": FLOW,
                        "topic": topic,
                        "partition": partition,
                        "sampled_at": ago(seconds),
                        "source_start": 0,
                        "source_end": 60 + step,
                        "staged_end": 58,
                        "produced_end": None if partition == 2 else 36,
                        "target_end": 70,
                        "lag_records": 24 + step,
                        "lag_seconds": None if step == 1 else 1900.7 + step,
                        "target_topic": None if partition == 1 and step == 3 else f"east.{topic}",
                        "mapped_end": 36 if partition else None,
                        "target_passed_end": 100 if partition == 1 else None,
                        "target_generation": 1 if topic != "orders" else None,
                    }
                )
    for seconds, end in ((3000, 9), (200, None), (4000, 7)):  # held for an hour, and lost
        rows.append(
            {
                "flow": FLOW,
                "topic": "orders",
                "partition": 3,
                "sampled_at": ago(seconds),
                "source_end": end,
                "lag_records": end and 2,
                "lag_seconds": end and 3.5,
                "interval_seconds": 60,
            }
        )
    rows.append({"flow": BACK, "topic": "orders", "partition": 2, "sampled_at": ago(7000)})
    return rows


def _checkpoints() -> Rows:
    return [
        {
            "flow": FLOW,
            "group_id": group,
            "topic": topic,
            "partition": partition,
            "source_position": 30 + step,
            "target_topic": f"east.{topic}",
            "target_position": 20,
            "metadata": None if step else "größe",
            "checkpointed_at": ago(300 - 10 * step),
            "synced": None if step == 2 else step == 3,
            "reason": (None, "gone")[partition] if step == 3 else "held back",
            "read_at": None if step == 1 else ago(300.4 - 9 * step),
            "target_generation": partition or None,
        }
        for group in ("billing", "группа")
        for topic in TOPICS
        for partition in (0, 1)
        for step in range(4)
    ]


def _incidents() -> Rows:
    base = {"flow": FLOW, "topic": TOPICS[0], "partition": 0, "at": ago(500)}
    return [
        {
            **base,
            "kind": "target_refused",
            "first_offset": 20,
            "last_offset": 20,
            "detail": "zu groß",
            "resolved_at": ago(400),
            "resolution": "skip",
        },
        {
            **base,
            "at": ago(501),
            "kind": "stage_trimmed",
            "first_offset": 1,
            "last_offset": 3,
            "detail": None,
        },
        {
            **base,
            "kind": "target_recreated",
            "partition": None,
            "topic": TOPICS[1],
            "target_generation": 0,
            "resolved_at": ago(300),
            "resolution": "again",
        },
        {"flow": BACK, "kind": "cluster_unreachable", "at": ago(10.5), "detail": "no broker"},
        {
            "flow": None,
            "kind": "source_truncated",
            "at": ago(3),
            "topic": TOPICS[0],
            "partition": 1,
            "last_offset": 9,
        },
        {
            **base,
            "kind": "source_rewound",
            "at": ago(8000),
            "first_offset": 4,
            "last_offset": 9,
            "resolution": "stop",
            "resolved_at": ago(7000),
        },
        *(
            {
                **base,
                "kind": "target_lost",
                "partition": partition,
                "target_generation": partition or None,
                "first_offset": 85,
                "target_offset": 15,
                "resolution": None if at is None else "accept",
                "resolved_at": at,
            }
            for partition in (0, 1)
            for at in (None, ago(280), ago(20))[partition:]
        ),
    ]


def _changes() -> Rows:
    return [
        {
            "flow": FLOW,
            "at": ago(seconds),
            "kind": "acl",
            "resource": "User:é",
            "before": before,
            "after": "x",
            "outcome": outcome,
            "error": error,
        }
        for seconds, before, outcome, error in (
            (50, None, "done", None),
            (40, None, "done", "later"),
            (30, "y", "refused", "no"),
            (20, None, "done", None),
        )
    ]


def _clusters() -> Rows:
    return [
        {
            "alias": alias,
            "cluster_id": f"{alias}-id",
            "first_seen": ago(9000),
            "last_seen": None if old else ago(60),
        }
        for alias, old in (("east", False), ("west", False), ("west", True), ("südost", True))
    ]


def _generations() -> Rows:
    common = {"source_cluster": "east", "topic": TOPICS[0], "topic_id": "a"}
    return [
        {**common, "generation": 0, "started_at": ago(9000)},
        {**common, "topic": TOPICS[1], "generation": 0, "started_at": ago(9000)},
        {**common, "generation": 1, "started_at": ago(2000), "partition": 0, "first_offset": 10},
        {**common, "topic": TOPICS[1], "generation": 1, "topic_id": "b", "started_at": ago(1000)},
    ]


def _target_generations() -> Rows:
    common = {
        "flow": FLOW,
        "topic": TOPICS[1],
        "target_topic": f"east.{TOPICS[1]}",
        "begins": "stage",
    }
    return [
        {
            **common,
            "target_generation": 0,
            "topic_id": "t0",
            "started_at": ago(9000),
            "began": [0, 0],
        },
        {
            **common,
            "target_generation": 1,
            "topic_id": "t1",
            "started_at": ago(290),
            "began": [0, 0, 7],
        },
        {**common, "flow": BACK, "target_generation": 0, "topic_id": "", "started_at": ago(290)},
    ]


def _objectives() -> Rows:
    common = {
        "lag_seconds": 60,
        "latency_p99_ms": 50,
        "heartbeat_seconds": 10,
        "stuck_seconds": 30,
        "enabled": True,
        "heartbeats": True,
        "gaps": True,
        "noted_at": ago(5000),
    }
    return [
        {**common, "flow": FLOW, "mode": "continuous", "since": ago(5000), "paused": None},
        {**common, "flow": BACK, "mode": "once", "since": None, "paused": "paused.*"},
        {"flow": "nowhere->null"},
    ]


def _states() -> Rows:
    return [
        {
            "cluster": "east",
            "topic": topic,
            "since": ago(seconds),
            "partitions": None if seconds == 60 else 2,
            "configs": configs,
            "topic_id": f"id{seconds}",
        }
        for topic in TOPICS
        for seconds, configs in (
            (100, {"retention.ms": "1"}),
            (60, {"a": "é", "b": "2"}),
            (300, None),
        )
    ] + [
        {
            "cluster": "east",
            "topic": "late",
            "since": ago(seconds),
            "partitions": seconds,
            "acls": acls,
        }
        for seconds, acls in ((7, None), (9, []), (8, [dict.fromkeys(_ACL, "é")]))
    ]


def _removals() -> Rows:
    return [
        {
            "source_cluster": "east",
            "topic": TOPICS[0],
            "partition": 0,
            "generation": 0,
            "first_offset": 0,
            "below": 3,
            "removed_at": ago(1),
        }
    ]


def _parked() -> Rows:
    place = {
        "topic": TOPICS[0],
        "partition": 0,
        "generation": 0,
        "target_topic": f"east.{TOPICS[0]}",
    }
    return [
        {
            "flow": FLOW,
            **place,
            "offset": offset,
            "target_generation": target_generation,
            "parked_at": ago(50),
            "reason": "MSG_SIZE_TOO_LARGE",
            "byte_count": 10,
            "replayed_at": replayed_at,
        }
        for offset, target_generation, replayed_at in (
            (1, 0, None),
            (4, 0, ago(1)),
            (4, 1, None),
            (900, 0, None),
        )
    ]


def _starts() -> Rows:
    """Two processes have noted the start of one flow: the first note counts."""
    common = {"flow": FLOW, "asked": "latest"}
    first = {**common, "topic": TOPICS[0], "partition": 0, "generation": 0}
    return [
        {**first, "first_offset": 2, "noted_at": ago(90)}, {**common, "noted_at": ago(90)},
        {**first, "first_offset": 3, "noted_at": ago(89)}, {**common, "noted_at": ago(89)},
        {**common, "flow": "east->north", "asked": "earliest", "noted_at": ago(80)},
    ]  # fmt: skip


def _forgotten() -> Rows:
    return [
        {
            "source_cluster": "east",
            "topic": TOPICS[0],
            "partition": 0,
            "generation": 0,
            "first_offset": first,
            "last_offset": last,
            "record_count": last - first + 1,
            "forget_id": f"id{first}",
            "noted_at": ago(40),
            "deleted_at": deleted_at,
        }
        for first, last, deleted_at in ((2, 3, ago(39)), (7, 7, ago(38)), (900, 901, None))
    ]
