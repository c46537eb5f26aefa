"""A reader of the stage that gives less than was planned fails, before anything behind the hole is
handed on."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mirrorlake.errors import CountDiffers
from mirrorlake.offsets.progress import NOTHING_MAPPED
from mirrorlake.offsets.spans import Span
from mirrorlake.produce.batch import PartitionPlan, ShardPlan
from mirrorlake.produce.counted import Stretch, check_unread, counted, narrowed
from mirrorlake.produce.stage_files import read_shard

PLAN = PartitionPlan(
    "t", 1, "t", floor=NOTHING_MAPPED, first=0, last=19, spans=(Span(0, 9, 10), Span(12, 19, 4))
)


def chunk(*offsets: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"offset": pa.array(offsets, pa.int64())})


def test_as_many_as_were_planned_are_handed_on() -> None:
    rows = [(PLAN, chunk(*range(10))), (PLAN, chunk(12, 14, 16, 19))]
    assert list(counted(iter(rows), [PLAN], {})) == rows


@pytest.mark.parametrize(
    "left", [[*range(8), 12, 14, 16, 19], list(range(10)), [0, 2, 12, 14, 16, 19], []]
)
def test_fewer_are_an_error_that_names_the_place(left: list[int]) -> None:
    with pytest.raises(
        CountDiffers, match="^t-1 was not read as it was planned, from offset 0 to 19"
    ) as raised:
        list(counted(iter([(PLAN, chunk(*left))] if left else []), [PLAN], {}))
    assert (raised.value.topic, raised.value.partition) == ("t", 1)
    assert (raised.value.first_offset, raised.value.last_offset) in ((0, 9), (12, 19))


def test_what_is_left_out_by_name_may_be_there_or_not() -> None:
    skipped = {("t", 1): ((8, 12),)}
    for offsets in ([*range(8), 14, 16, 19], [*range(10), 12, 14, 16, 19], [*range(9), 14, 16, 19]):
        list(counted(iter([(PLAN, chunk(*offsets))]), [PLAN], skipped))
    with pytest.raises(CountDiffers):
        list(counted(iter([(PLAN, chunk(*range(7), 14, 16, 19))]), [PLAN], skipped))


def test_a_partition_without_a_row_has_none_or_only_what_is_left_out() -> None:
    check_unread(
        [replace(PLAN, spans=(Span(3, 7, 0),)), replace(PLAN, partition=2, spans=None)], {}
    )
    check_unread([PLAN], {("t", 1): ((0, 19),)})
    with pytest.raises(CountDiffers, match="10 records by the index of the stage, and 0 were read"):
        check_unread([PLAN], {})


def test_what_a_batch_cuts_is_counted_outside() -> None:
    cut = replace(PLAN, first=5, last=15, spans=(Span(0, 9, 4), Span(12, 19, 5)))
    whole = replace(PLAN, partition=2)
    asked: list[Stretch] = []

    def count(stretches: Sequence[Stretch]) -> list[int]:
        asked.extend(stretches)
        return [1, 3]

    assert narrowed([whole, cut, replace(cut, spans=None)], count) == [
        whole,
        replace(cut, spans=(Span(5, 9, 3), Span(12, 15, 2))),
        replace(cut, spans=None),
    ]
    assert asked == [(cut.place, 0, 4), (cut.place, 16, 19)]
    assert narrowed([whole], lambda _: pytest.fail("nothing is cut")) == [whole]


@pytest.mark.parametrize("written", [[0, 1, 2, 3, 4, 6, 7, 8, 9], list(range(9)), [0], [0, 2, 9]])
def test_a_file_that_holds_less_than_the_index_says_is_found_before_its_first_row(
    tmp_path: Path, written: list[int]
) -> None:
    count = len(written)
    columns = {
        "source_cluster": pa.array(["east"] * count),
        "topic": pa.array(["t"] * count),
        "partition": pa.array([1] * count, pa.int32()),
        "generation": pa.array([0] * count, pa.int32()),
        "offset": pa.array(written),
        **{
            name: pa.nulls(count, pa.binary())
            for name in ("timestamp", "key", "value", "headers", "landed_at")
        },
    }
    pq.write_table(pa.table(columns), tmp_path / "f")
    plan = replace(PLAN, last=9, spans=(Span(0, 9, 10),))
    with pytest.raises(CountDiffers):
        next(read_shard(ShardPlan(0, (plan,), (str(tmp_path / "f"),), 10, "east"), {}))
