"""Which records a target has of a replay, by their headers, once it has forgotten the position."""

import json
from typing import Any

import pyarrow as pa
import pytest

from mirrorlake.offsets.progress import Floor
from mirrorlake.offsets.runs import Segment
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.marked import SOURCE_HEADER, marked_segments

MARK = ("mirrorlake-replay", b"mine")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def place(offset: object, topic: str = "orders", partition: int = 3) -> tuple[str, bytes]:
    return SOURCE_HEADER, json.dumps(
        {"cluster": "east", "topic": topic, "partition": partition, "offset": offset}
    ).encode()


def found(*records: list[tuple[Any, Any]] | None, floor: int = 0) -> list[Segment] | None:
    """What is found in a target partition with records of these headers, from offset 70 on."""
    plan = PartitionPlan("orders", 3, "east.orders", Floor(floor, None), first=floor, last=99)
    headers = [
        None if one is None else [dict(zip(("key", "value"), pair, strict=True)) for pair in one]
        for one in records
    ]
    batch = pa.RecordBatch.from_pydict(
        {"offset": range(70, 70 + len(headers)), "headers": headers},
        schema=pa.schema([("offset", pa.int64()), ("headers", HEADERS)]),
    )
    return marked_segments([batch.slice(0, 1), batch.slice(1)], plan, MARK)


def test_what_has_the_mark_is_where_its_headers_say() -> None:
    """Between records of the flow, and of another replay."""
    other = [("mirrorlake-replay", b"other"), place(8)]
    assert found([MARK, place(5)], None, other, [MARK, place(7)], [MARK, place(8)]) == [
        Segment(5, 1, 70, 1),
        Segment(7, 1, 73, 2),
    ]
    assert found(None, other) == []


def test_one_that_was_replayed_before_has_its_place_behind_that() -> None:
    before = [("mirrorlake-replay", b"before"), place(900, "others", 0)]
    assert found([*before, MARK, place(5)]) == [Segment(5, 1, 70, 1)]


@pytest.mark.parametrize(
    "headers",
    [
        [MARK],
        [MARK, (SOURCE_HEADER, b"{")],
        [MARK, (SOURCE_HEADER, None)],
        [MARK, (SOURCE_HEADER, b"7")],
        [MARK, place("x")],
        [MARK, place(9, "others")],
        [MARK, place(9, partition=2)],
        [MARK, place(5)],
        [MARK, place(3)],
        [(None, None)],
    ],
    ids=str,
)
def test_nothing_is_found_where_headers_do_not_say_which_one_it_is(headers: list[Any]) -> None:
    """Of another partition, once more, in front of one before, or as no client gives them."""
    assert found([MARK, place(5)], headers) is None


def test_what_the_map_has_is_not_there_once_more() -> None:
    assert found([MARK, place(5)], floor=6) is None
    assert found([MARK, place(6)], floor=6) == [Segment(6, 1, 70, 1)]
