"""Where a query would go on, from the files of its checkpoint as Spark writes them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.errors import InputError
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.spark.query_files import (
    QueryPosition,
    committed_batch,
    read_position,
    starting_offsets,
)

METADATA = (
    '{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,'
    '"conf":{"spark.sql.shuffle.partitions":"200"}}'
)


def log(*sources: str) -> str:
    return "\n".join(["v1", METADATA, *sources])


@pytest.mark.parametrize(
    ("offsets", "commits", "batch"),
    [
        ([0, 1, 2], [0, 1, 2], 2),
        ([0, 1, 2], [0, 1], 1),  # batch 2 was under way: it is done once more
        ([0], [], None),
        ([7, 8], [6, 7], 7),  # old ones are deleted
    ],
)
def test_the_next_start_begins_behind_the_last_committed_batch(
    offsets: list[int], commits: list[int], batch: int | None
) -> None:
    assert committed_batch(offsets, commits) == batch


@pytest.mark.parametrize(
    ("offsets", "commits", "said"), [([], [], "no offsets"), ([4], [3], "batch 3")]
)
def test_a_checkpoint_that_is_not_whole(offsets: list[int], commits: list[int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        committed_batch(offsets, commits)


def test_one_source() -> None:
    position = read_position(3, log('{"orders":{"0":5,"11":7},"a.b":{"2":0}}'), {})
    assert position == QueryPosition(3, {0: {("orders", 0): 5, ("orders", 11): 7, ("a.b", 2): 0}})


def test_sources_that_do_not_read_kafka_are_left_out() -> None:
    text = log(
        '{"logOffset":3}',
        '{"orders":{"0":5}}',
        "42",
        '{"sourceVersion":1,"reservoirId":"x","index":-1}',
    )
    assert read_position(0, text, {}).sources == {1: {("orders", 0): 5}}


def test_a_source_without_an_offset_goes_on_where_it_began() -> None:
    began = {1: '\0v1\n{"payments":{"0":9}}'}
    assert read_position(0, log('{"orders":{"0":5}}', "-"), began).sources == {
        0: {("orders", 0): 5},
        1: {("payments", 0): 9},
    }


def test_the_committed_offset_wins_over_where_a_source_began() -> None:
    assert read_position(0, log('{"t":{"0":5}}'), {0: '\0v1\n{"t":{"0":1}}'}).sources == {
        0: {("t", 0): 5}
    }


def test_without_a_committed_batch_all_sources_go_on_where_they_began() -> None:
    position = read_position(
        None, None, {0: '\0v1\n{"orders":{"0":-2}}', 1: "v1\n7", 2: '\0v1\n{"payments":{"0":-1}}'}
    )
    assert position == QueryPosition(None, {0: {("orders", 0): -2}, 2: {("payments", 0): -1}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("v2\n{}\n{}", "'v2'"),
        ("", "''"),
        ("PAR1", "'PAR1'"),
        (log(), "reads Kafka"),
        (log("-"), "reads Kafka"),
        (log('{"t":{}}'), "reads Kafka"),
        (log('{"t":{"x":1}}'), "reads Kafka"),
        (log('{"t":{"0":"1"}}'), "reads Kafka"),
        (log('{"t":{"0":true}}'), "reads Kafka"),
    ],
)
def test_other_files_are_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_position(0, text, {})


@given(
    st.dictionaries(
        st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 200)),
        st.integers(-2, 2**63 - 1),
        min_size=1,
    )
)
def test_starting_offsets_are_read_back_as_they_were(
    positions: dict[TopicAndPartition, int],
) -> None:
    assert read_position(0, log(starting_offsets(positions)), {}).sources == {0: positions}


def test_starting_offsets_are_in_order() -> None:
    text = starting_offsets({("b", 10): 1, ("b", 9): 2, ("a", 0): -2})
    assert text == '{"a":{"0":-2},"b":{"9":2,"10":1}}'
    assert json.loads(text)
