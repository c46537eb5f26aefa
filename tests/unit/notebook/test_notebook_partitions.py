"""Notebooks show each partition, and why records of it are missing, also where that is about the
whole topic."""

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
