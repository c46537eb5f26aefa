"""Which records compaction has to leave: the last one of each key, as far as it was sent, and no
old deletion."""

from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.lake.definitions import TABLES, rows_of
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.reader import OFFSET_RANGES, Frame
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.verify.compaction import _COMPACTED, with_last_of_key
from mirrorlake.verify.job import Range
from mirrorlake.verify.partition_scope import PartitionScope
from mirrorlake.verify.verdict import GIVEN_UP, Allowances
from tests.support.lake_rows import append, no_session, opened, staged, write_file

NOW_MS = 1_000_000
WAYS = {"flow": "east->west", "back": "west->east", "target": "west"}


def kept(
    directory: Path,
    keys: list[str | None],
    below: int,
    deletions: dict[int, int],
    left_out: list[tuple[int, int]],
) -> list[int]:
    """Of records with these keys (`deletions`: the ages in ms of those that are deletions) what has
    to stay of the first six."""
    tables = PathTables(directory)
    for table in TABLES:
        tables.create(table)
    rows = [
        {
            **{"source_cluster": "east", "topic": "t", "partition": 0, "offset": at, "batch_id": 1},
            "timestamp": datetime.fromtimestamp(
                (NOW_MS - deletions.get(at, 0)) / 1000, timezone.utc
            ),
            "key": None if key is None else key.encode(),
            "value": None if at in deletions else b"v",
            "landed_at": datetime.now(timezone.utc),
        }
        for at, key in enumerate(keys)
    ]
    tables.append("records", rows_of("records", rows))
    frames = {
        "compacted": Frame(_COMPACTED, [("t", 0, 0, 0, 5, below)]),
        "left_out": Frame(OFFSET_RANGES, [("t", 0, 0, *extent) for extent in left_out]),
    }
    args = {"source_cluster": "east", "deletions_ms": NOW_MS - 500, **WAYS}
    return sorted(
        row["offset"]
        for row in DuckLake(directory).query_rows("verify_last_of_key", frames, **args)
    )


KEYS: list[str | None] = ["a", "b", "a", None, "c", "b", "c", "a"]


def test_the_last_of_each_key_and_what_has_none(tmp_path: Path) -> None:
    assert kept(tmp_path, KEYS, 8, {}, []) == [3, 5], "a and c come again later"


def test_what_was_not_sent_supersedes_nothing(tmp_path: Path) -> None:
    assert kept(tmp_path / "a", KEYS, 7, {}, []) == [2, 3, 5]
    assert kept(tmp_path / "b", KEYS, 8, {}, [(6, 7)]) == [2, 3, 4, 5]


def test_deletions_go_after_some_time(tmp_path: Path) -> None:
    assert kept(tmp_path / "a", KEYS, 8, {5: 400}, []) == [3, 5]
    assert kept(tmp_path / "b", KEYS, 8, {5: 600}, []) == [3]


FLOW_OF_T = SimpleNamespace(
    name="east->west", source="east", target="west", settings=SimpleNamespace(provenance="headers")
)


def a_range(first: int, last: int) -> Range:
    """Of a compacted target topic, all of it mapped."""
    return Range(
        *("t", 0, 0, first, last),
        target_topic="east.t",
        target_generation=0,
        target_first=first,
        target_end=last + 1,
        files=(),
        segments=(),
        allowed=Allowances(target_compacts=True),
    )


def lake_of(directory: Path, keys: list[str | None], parked: dict[int, bool]) -> Lake:
    """A lake in a folder that has records with these keys, and parked ones, by offset, that were
    sent since or not."""
    lake = opened(no_session, write_file(directory))[0]
    rows = [
        {**row, "topic": "t", "key": None if key is None else key.encode(), "value": b"v"}
        for row, key in zip(staged(range(len(keys))), keys, strict=True)
    ]
    append(lake, "records", rows)
    now = datetime.now(timezone.utc)
    place = {"flow": "east->west", "topic": "t", "partition": 0, "generation": 0}
    place |= {"target_topic": "east.t", "target_generation": 0, "parked_at": now}
    waiting = [
        {**place, "offset": at, "replayed_at": now if sent else None} for at, sent in parked.items()
    ]
    lake.append("parked", rows_of("parked", waiting))
    return lake


@pytest.mark.parametrize(
    ("parked", "given_up", "wanted"),
    [
        ({}, [], {3, 5}),
        ({6: False, 7: False}, [], {2, 3, 4, 5}),
        ({6: True, 7: True}, [], {3, 5}),
        ({}, [(6, 7)], {2, 3, 4, 5}),
    ],
    ids=["sent", "parked", "parked and sent since", "given up"],
)
def test_what_was_left_out_behind_a_range_supersedes_nothing_in_it(
    tmp_path: Path, parked: dict[int, bool], given_up: list[tuple[int, int]], wanted: set[int]
) -> None:
    """The last c and a are in another range than the one of which records are missing."""
    lake = lake_of(tmp_path, KEYS, parked)
    left_out = {GIVEN_UP: OffsetRanges(given_up)} if given_up else {}
    scope = PartitionScope(
        *("t", 0, 0, "east.t", 0, 0, len(KEYS), 0, len(KEYS)),
        allowed=Allowances(target_compacts=True, left_out=left_out),
    )
    flow: Any = FLOW_OF_T
    (found,) = with_last_of_key(lake, flow, [a_range(0, 5)], {("t", 0): scope}, NOW_MS)
    assert found.allowed.last_of_key == wanted


def test_a_deletion_whose_time_is_no_date_stays_as_long_as_that_time_says(tmp_path: Path) -> None:
    """It is null in `timestamp`, and neither old nor new by that."""
    lake = opened(no_session, write_file(tmp_path))[0]
    (row,) = staged(range(1))
    odd = {"topic": "t", "value": None, "timestamp": None, "timestamp_ms": 10**18}
    append(lake, "records", [{**row, **odd, "key": b"a"}])
    frames = {
        "compacted": Frame(_COMPACTED, [("t", 0, 0, 0, 0, 1)]),
        "left_out": Frame(OFFSET_RANGES, []),
    }
    args = {"source_cluster": "east", "deletions_ms": NOW_MS, **WAYS}
    rows = lake.ask("verify_last_of_key", frames, **args)
    assert [row["offset"] for row in rows] == [0]


@pytest.mark.parametrize(
    ("echo_at", "mapped", "provenance", "wanted"),
    [
        (4, True, "headers", {0, 1}),
        (6, True, "headers", {1}),
        (4, False, "headers", {1}),
        (4, True, "none", {1}),
    ],
    ids=["in front there", "behind it there", "of another way", "sent again"],
)
def test_an_echo_supersedes_what_is_in_front_of_it_at_the_target(
    tmp_path: Path, echo_at: int, mapped: bool, provenance: str, wanted: set[int]
) -> None:
    """Two flows share a topic. The target had written the key before it got ours, and what was
    brought back of it came behind ours: of these two compaction keeps ours."""
    lake = lake_of(tmp_path, ["a", "b"], {})
    (echo,) = staged([2])
    echo |= {"topic": "t", "key": b"a", "value": b"v"}
    header = {"key": "mirrorlake-provenance", "value": b"id-of-west"}
    append(lake, "records", [{**echo, "headers": [header]}])
    now = datetime.now(timezone.utc)
    lake.append(
        "clusters",
        rows_of("clusters", [{"alias": "west", "cluster_id": "id-of-west", "last_seen": now}]),
    )
    ours, back = map_row("east->west", 0, 5, 2), map_row("west->east", echo_at, 2, 1)
    lake.append("offset_map", rows_of("offset_map", [ours, back] if mapped else [ours]))
    scope = PartitionScope(
        *("t", 0, 0, "t", 0, 0, 3, 0, 9), allowed=Allowances(target_compacts=True)
    )
    flow: Any = SimpleNamespace(**{**vars(FLOW_OF_T), "settings": SimpleNamespace()})
    flow.settings.provenance = provenance
    (found,) = with_last_of_key(lake, flow, [a_range(0, 1)], {("t", 0): scope}, NOW_MS)
    assert found.allowed.last_of_key == wanted


def map_row(flow: str, source: int, target: int, count: int) -> dict[str, Any]:
    """A run of t-0 of both clusters."""
    segment = {"source_first": source, "stride": 1, "target_first": target, "record_count": count}
    row: dict[str, Any] = {"flow": flow, "topic": "t", "partition": 0, "source_first": source}
    row |= {"source_last": source + count - 1, "target_topic": "t", "target_partition": 0}
    row |= {"target_first": target, "target_last": target + count - 1, "record_count": count}
    row |= {"produced_at": datetime.now(timezone.utc), "batch_id": 1, "segments": [segment]}
    return row
