"""The view `proof_status` over a lake in a folder: what nobody has compared is not proven."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.lake.definitions import TABLES, rows_of
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.path_tables import PathTables

NOW = datetime.now(timezone.utc)


def mapped(topic: str, count: int) -> dict[str, object]:
    return {
        "flow": "east->west",
        "topic": topic,
        "partition": 0,
        "source_first": 0,
        "source_last": count - 1,
        "target_topic": f"east.{topic}",
        "target_partition": 0,
        "target_first": 0,
        "target_last": count - 1,
        "record_count": count,
        "produced_at": NOW,
        "batch_id": 1,
        "segments": [{"source_first": 0, "stride": 1, "target_first": 0, "record_count": count}],
    }


def audit(topic: str, first: int, last: int, verdict: str) -> dict[str, object]:
    count = last - first + 1
    return {
        "flow": "east->west",
        "topic": topic,
        "target_topic": f"east.{topic}",
        "partition": 0,
        "first_offset": first,
        "last_offset": last,
        "source_count": count,
        "stage_count": count,
        "target_count": count,
        "verdict": verdict,
        "audited_at": NOW,
    }


def test_how_much_is_proven(tmp_path: Path) -> None:
    tables = PathTables(tmp_path)
    for table in TABLES:
        tables.create(table)
    tables.append(
        "offset_map",
        rows_of("offset_map", [mapped(topic, 100) for topic in ("all", "half", "none", "bad")]),
    )
    verdicts = [
        ("all", 0, 99, "proven"),
        ("half", 0, 49, "source_trimmed"),
        ("bad", 0, 99, "content"),
    ]
    tables.append("audits", rows_of("audits", [audit(*verdict) for verdict in verdicts]))
    lake = DuckLake(tmp_path)
    found = {row["topic"]: row for row in lake.table_rows("proof_status")}
    shares = {topic: (row["proven_records"], row["proven_share"]) for topic, row in found.items()}
    assert shares == {"all": (100, 1.0), "half": (50, 0.5), "none": (0, 0.0), "bad": (0, 0.0)}
    assert {
        topic: row["differing_ranges"] for topic, row in found.items() if row["differing_ranges"]
    } == {"bad": 1}


@pytest.mark.parametrize(("open_incident", "newest", "shown"), [
    (False, 0, (100, 100)), (True, 0, (100, 0)), (False, 1, (30, 0)),
])  # fmt: skip
def test_proofs_of_a_target_topic_that_is_gone_do_not_count(
    tmp_path: Path, open_incident: bool, newest: int, shown: tuple[int, int]
) -> None:
    """While nobody has decided, and once its successor has 30 records."""
    tables = PathTables(tmp_path)
    for table in TABLES:
        tables.create(table)
    maps = [mapped("t", 100), {**mapped("t", 30), "target_generation": 1}]
    tables.append("offset_map", rows_of("offset_map", maps[: 1 + newest]))
    nameless = {"target_topic": None}  # of which topic that was is not known
    audits = [audit("t", 0, 99, "proven"), audit("t", 0, 99, "proven") | nameless]
    tables.append("audits", rows_of("audits", audits))
    common = {
        "flow": "east->west",
        "topic": "t",
        "target_topic": "east.t",
        "topic_id": "x",
        "begins": "stage",
    }
    noted = [
        {**common, "target_generation": number, "started_at": NOW} for number in range(newest + 1)
    ]
    tables.append("target_generations", rows_of("target_generations", noted))
    if open_incident:
        incident = {
            "flow": "east->west",
            "at": NOW,
            "kind": "target_recreated",
            "topic": "t",
            "target_generation": 0,
        }
        tables.append("incidents", rows_of("incidents", [incident]))
    (row,) = DuckLake(tmp_path).table_rows("proof_status")
    assert (row["mapped_records"], row["proven_records"]) == shown
    assert row["audited_at"] is not None, "that it was compared once is said still"


def test_all_is_proven_only_where_nothing_is_left(tmp_path: Path) -> None:
    """One record of a hundred million is no share that a rounded number shows."""
    count = 100_000_000
    tables = PathTables(tmp_path)
    for table in TABLES:
        tables.create(table)
    tables.append("offset_map", rows_of("offset_map", [mapped("t", count), mapped("none", 0)]))
    tables.append("audits", rows_of("audits", [audit("t", 0, count - 2, "proven")]))
    found = {row["topic"]: row for row in DuckLake(tmp_path).table_rows("proof_status")}
    assert found["t"]["proven_records"] == count - 1
    assert (found["t"]["proven_share"], found["none"]["proven_share"]) == (0.999999, 0.0)


@pytest.mark.parametrize("why", ["echo", "parked", "given_up"])
def test_what_was_left_out_stands_for_nothing_that_was_not_compared(
    tmp_path: Path, why: str
) -> None:
    """Of 100 staged records 50 were sent and proven; of the other 100 all were sent, and none was
    compared yet."""
    tables = PathTables(tmp_path)
    for table in TABLES:
        tables.create(table)
    sent = [(0, 2, 50), (100, 1, 100)]
    names = ("source_first", "stride", "record_count")
    segments = [dict(zip(names, one, strict=True)) | {"target_first": 0} for one in sent]
    row = mapped("t", 200) | {"record_count": 150, "segments": segments}
    tables.append("offset_map", rows_of("offset_map", [row]))
    compared = {**audit("t", 0, 99, "proven"), "excused": [(why, 50), ("source_trimmed", 10)]}
    tables.append("audits", rows_of("audits", [compared]))
    lake = DuckLake(tmp_path)
    (row,) = lake.table_rows("proof_status")
    assert (row["mapped_records"], row["proven_records"]) == (150, 50)
    (proof,) = lake.table_rows("proofs")
    assert (proof["record_count"], proof["mapped_count"]) == (100, 50)


#: `make test` has the first five.
EXCUSED: list[Any] = [
    ([("superseded", 3)], 0, False, (97, 3)),
    ([("target_trimmed", 2)], 0, False, (98, 2)),
    ([("source_trimmed", 100)], 0, False, (100, 0)),
    ([("forgotten", 4)], 0, False, (100, 0)),
    ([("source_trimmed", 90), ("forgotten", 4), ("stage_trimmed", 1)], None, False, (95, 5)),
    ([("source_trimmed", 1), ("stage_trimmed", 7)], None, False, (99, 1)),
    ([("source_trimmed", 90), ("stage_trimmed", 7)], 0, False, (100, 0)),
    ([("source_trimmed", 90), ("stage_trimmed", 7)], 2, False, (98, 2)),
    ([("target_trimmed", 1)], 0, True, (99, 1)),
    ([("target_trimmed", 500)], 0, False, (0, 100)),
]


@pytest.mark.parametrize(
    ("excused", "only_mapped", "again", "shown"),
    [
        *EXCUSED[:5],
        *(
            pytest.param(
                *case,
                marks=pytest.mark.wide("test_what_nothing_was_left_to_compare_with_is_not_proven"),
            )
            for case in EXCUSED[5:]
        ),
    ],
    ids=[
        *("compacted", "retention took it", "the stage has it", "the source has it", "neither"),
        *("few at the source", "each is somewhere", "two are not", "in a part"),
        "more than the map has",
    ],
)
def test_what_nothing_was_left_to_compare_with_is_not_proven(
    tmp_path: Path,
    excused: list[tuple[str, int]],
    only_mapped: int | None,
    again: bool,
    shown: tuple[int, int],
) -> None:
    """Nothing differs, and a share of 1 said that all was proven. Where an earlier version
    compared, what source and stage lack may be the same records."""
    tables = PathTables(tmp_path)
    for table in TABLES:
        tables.create(table)
    tables.append("offset_map", rows_of("offset_map", [mapped("t", 100)]))
    before = audit("t", 0, 99, "proven") | {"excused": excused, "only_mapped": only_mapped}
    audits = [before | {"audited_at": NOW - timedelta(hours=1)}]
    if again:  # of a part, in which nothing was gone any more
        audits.append(audit("t", 50, 99, "proven"))
    tables.append("audits", rows_of("audits", audits))
    (row,) = DuckLake(tmp_path).table_rows("proof_status")
    assert (row["proven_records"], row["gone_records"]) == shown
    assert (row["proven_share"] < 1) is bool(shown[1]) and row["differing_ranges"] == 0


@pytest.mark.parametrize("at", [0, 98])
@pytest.mark.parametrize("in_one_row", [True, False])
def test_a_record_that_differs_is_no_proven_one(tmp_path: Path, at: int, in_one_row: bool) -> None:
    """However few it is of those that its stretch was proven with before: half of the records lie
    in the last tenth of that."""
    tables = PathTables(tmp_path)
    for table in TABLES:
        tables.create(table)
    segments = [
        {"source_first": 0, "stride": 18, "target_first": 0, "record_count": 50},
        {"source_first": 900, "stride": 2, "target_first": 50, "record_count": 50},
    ]
    offsets = [*range(0, 900, 18), *range(900, 1000, 2)]
    rows: list[dict[str, object]] = [{"source_last": 998, "segments": segments}]
    if not in_one_row:
        rows = [
            {"source_last": 882, "segments": segments[:1], "record_count": 50},
            {"source_first": 900, "source_last": 998, "segments": segments[1:], "record_count": 50},
        ]
    tables.append("offset_map", rows_of("offset_map", [mapped("t", 100) | row for row in rows]))
    before = audit("t", 0, 999, "proven") | {"audited_at": NOW - timedelta(hours=1)}
    again = audit("t", offsets[at], offsets[at], "content") | {"stage_count": 1}
    tables.append("audits", rows_of("audits", [before | {"stage_count": 100}, again]))
    (row,) = DuckLake(tmp_path).table_rows("proof_status")
    assert (row["mapped_records"], row["proven_records"]) == (100, 99)
    assert row["proven_share"] == 0.99


@pytest.mark.parametrize(
    "uncompared",
    [{"partition": 1}, {"source_first": 1_000, "source_last": 1_039, "target_first": 100}],
    ids=["another partition", "behind what is proven"],
)
def test_an_estimate_stands_for_nothing_that_was_not_compared(
    tmp_path: Path, uncompared: dict[str, object]
) -> None:
    """Of 100 records that were proven 90 lie in the second half of their stretch, which was
    compared again: the first half has 10, and seems to have 50."""
    tables = PathTables(tmp_path)
    for table in TABLES:
        tables.create(table)
    runs: list[dict[str, object]] = [
        {},
        {"source_first": 910, "source_last": 999, "record_count": 90, "target_first": 10},
        {"record_count": 40, **uncompared},
    ]
    tables.append("offset_map", rows_of("offset_map", [mapped("t", 10) | run for run in runs]))
    before = audit("t", 0, 999, "proven") | {"audited_at": NOW - timedelta(hours=1)}
    audits = [before | {"stage_count": 100}, audit("t", 500, 999, "proven") | {"stage_count": 90}]
    tables.append("audits", rows_of("audits", audits))
    (row,) = DuckLake(tmp_path).table_rows("proof_status")
    assert (row["mapped_records"], row["proven_records"]) == (140, 100)
    assert row["proven_share"] < 1
