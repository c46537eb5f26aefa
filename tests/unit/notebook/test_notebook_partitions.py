"""Notebooks show each partition, and why records of it are missing, also where that is about the
whole topic."""

from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    no_session,
    opened,
    run_row,
    staged,
    write_file,
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return opened(no_session, write_file(tmp_path))[0]


def asked(lake: Lake, name: str, **args: object) -> list[dict[str, Any]]:
    folder = files("mirrorlake") / "sql" / "notebooks"
    return lake.now.rows((folder / f"{name}.sql").read_text("utf-8"), {"flow": FLOW, **args})


def test_partitions_of_several_generations_are_all_mapped(lake: Lake) -> None:
    """The log of partition 1 went back, so that it began a generation by itself."""
    rows = [run_row(0, 9), run_row(0, 99, partition=1), run_row(50, 59, partition=1, generation=1)]
    append(lake, "offset_map", rows)
    found = asked(lake, "mapped_partitions", topic="orders")
    assert [(row["partition"], row["source_first"], row["record_count"]) for row in found] == [
        (0, 0, 10),
        (1, 50, 10),
    ]


def test_what_each_target_topic_got_is_mapped(lake: Lake) -> None:
    """Under another policy, of which the topic was made again, the flow had another one."""
    now = {"target_topic": "orders", "target_first": 0, "target_last": 9}
    rows = [run_row(0, 99, target_generation=1), run_row(100, 109, target_generation=0, **now)]
    append(lake, "offset_map", rows)
    found = asked(lake, "mapped_partitions", topic="orders")
    places = [(row["target_topic"], row["source_first"], row["target_last"]) for row in found]
    assert places == [("east.orders", 0, 99), ("orders", 100, 9)]


@pytest.mark.parametrize(
    ("begun", "offsets"),
    [
        ([], [5, 7, 9]),
        ([{"generation": 1, "partition": None}], [9]),
        ([{"generation": 1, "partition": 0, "first_offset": 6}], [5, 9]),
        ([{"generation": 1, "partition": 1, "first_offset": 0}], [5, 7, 9]),
    ],
    ids=["first", "made again", "went back", "another one went back"],
)
def test_offsets_of_a_log_that_is_no_more_are_not_asked_about(
    lake: Lake, begun: list[dict[str, object]], offsets: list[int]
) -> None:
    """They would be translated as those of other records, exactly."""
    append(lake, "records", [*staged([5, 7]), *staged([9], seconds_ago=60, generation=1)])
    common = {"source_cluster": "east", "topic": "orders", "topic_id": "x", "started_at": ago(90)}
    if begun:
        lake.append("generations", rows_of("generations", [{**common, **one} for one in begun]))
    found = asked(lake, "offsets_of_key", topic="orders", key="k", partition=-1)
    assert sorted(row["source_offset"] for row in found) == offsets
    since = asked(lake, "offsets_at", topic="orders", at=ago(180).isoformat())
    assert [row["source_offset"] for row in since] == offsets[:1]


def test_a_batch_of_a_time_to_come_is_not_the_newest_one(lake: Lake) -> None:
    """Behind it nothing would be drawn."""
    row = {"flow": FLOW, "topic": "orders", "partition": 0, "batch_id": 1, "record_count": 1}
    rows = [{**row, "produced_at": ago(seconds)} for seconds in (7200, -7200)]
    append(lake, "latency", rows)
    (span,) = asked(lake, "span", since="", until="")
    assert datetime.fromisoformat(span["until"]) < ago(7100)


@pytest.mark.parametrize("partition", [None, 0])
def test_what_is_said_about_the_topic_is_said_about_its_partitions(
    lake: Lake, partition: int | None
) -> None:
    append(lake, "records", staged(range(10)))
    append(lake, "offset_map", [run_row(0, 4)])
    common = {"flow": FLOW, "topic": "orders", "detail": "it waits"}
    incidents = [
        {**common, "at": ago(9), "kind": "target_refused", "partition": 1},
        {**common, "at": ago(90), "kind": "source_refused", "partition": 0, "resolved_at": ago(1)},
        {**common, "at": ago(60), "kind": "target_recreated", "partition": partition},
    ]
    lake.append("incidents", rows_of("incidents", incidents))
    (row,) = asked(lake, "missing_since")
    assert (row["first_offset"], row["last_offset"]) == (5, 9)
    assert (row["incident"], row["decision"]) == ("target_recreated", "open")
