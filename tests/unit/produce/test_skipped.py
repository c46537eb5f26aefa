"""Records that an operator gave up are left out, and nothing else."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.produce.batch import NOTHING_MAPPED, PartitionPlan
from mirrorlake.produce.counted import without_skipped

PLAN = PartitionPlan("orders", 1, "east.orders", floor=NOTHING_MAPPED, first=0, last=100)
RANGES = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda pair: (min(pair), max(pair))),
    max_size=3,
)


@given(st.lists(st.integers(0, 60), unique=True, max_size=40).map(sorted), RANGES)
def test_only_the_ranges_are_left_out(offsets: list[int], ranges: list[tuple[int, int]]) -> None:
    rows = pa.record_batch({"offset": pa.array(offsets, pa.int64())})
    kept = [
        offset
        for _, part in without_skipped(iter([(PLAN, rows)]), {("orders", 1): tuple(ranges)})
        for offset in part.column("offset").to_pylist()
    ]
    assert kept == [
        offset for offset in offsets if not any(first <= offset <= last for first, last in ranges)
    ]


def test_other_partitions_are_left_alone() -> None:
    rows = pa.record_batch({"offset": pa.array([1, 2, 3], pa.int64())})
    assert [
        part.num_rows
        for _, part in without_skipped(iter([(PLAN, rows)]), {("orders", 0): ((1, 3),)})
    ] == [3]
