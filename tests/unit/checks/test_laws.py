"""What must be mapped, and what a target must still have. No Kafka, no Spark."""

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.checks.laws import MapExtent, OvertakenRange, gaps_of, overtaken, shortfalls
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.offsets.stage_index import StageIndex

FLOW = "east->west"


def extent(
    generation: int, source_end: int, target_end: int = 0, target_generation: int = 0
) -> MapExtent:
    return MapExtent(
        FLOW, "orders", 0, generation, "east.orders", 0, target_generation, source_end, target_end
    )


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5)), max_size=8),
    st.integers(0, 2),
    st.integers(0, 20),
)
def test_all_that_lies_in_front_of_the_end_is_counted(
    files: list[tuple[int, int]], newest: int, end: int
) -> None:
    """`files` are (generation, records); a file that the end lies in does not count."""
    index, ends, wanted = StageIndex(), dict.fromkeys(range(3), 0), dict.fromkeys(range(3), 0)
    for number, (generation, count) in enumerate(files):
        first, last = ends[generation], ends[generation] + count - 1
        ends[generation] = last + 1
        item = StagedRange("east", "orders", 0, generation, first, last, count)
        index.apply([(f"file-{number}", [item])], (), number)
        if generation < newest or (generation == newest and last < end):
            wanted[generation] += count
    extents = [extent(newest, end), MapExtent("other", "orders", 0, 2, "o", 0, 0, 99, 99)]
    overtaken_parts = overtaken(FLOW, extents, index.topics("east"))
    assert {stretch.generation: stretch.record_count for stretch in overtaken_parts} == {
        at: n for at, n in wanted.items() if n
    }
    assert all(
        stretch
        == OvertakenRange(FLOW, "orders", 0, stretch.generation, 0, stretch.last, stretch.last + 1)
        for stretch in overtaken_parts
    )


def test_what_is_produced_again_is_not_overtaken_before_it_is() -> None:
    index = StageIndex()
    for first in range(0, 40, 10):
        index.apply(
            [(str(first), [StagedRange("east", "orders", 0, 0, first, first + 9, 10)])], (), first
        )
    overtaken_parts = overtaken(
        FLOW, [extent(0, 40), extent(0, 20, target_generation=1)], index.topics("east")
    )
    assert overtaken_parts == [OvertakenRange(FLOW, "orders", 0, 0, 0, 19, 20)]


def test_what_an_operator_stopped_has_not_been_overtaken() -> None:
    index = StageIndex()
    for generation, first in ((0, 0), (0, 10), (0, 20), (1, 0)):
        item = StagedRange("east", "orders", 0, generation, first, first + 9, 10)
        index.apply([(f"{generation}-{first}", [item])], (), 10 * generation + first)
    stopped = {PartitionGeneration("orders", 0, 0): 12}
    overtaken_parts = overtaken(FLOW, [extent(0, 12), extent(1, 10)], index.topics("east"), stopped)
    assert [(stretch.generation, stretch.first, stretch.last) for stretch in overtaken_parts] == [
        (0, 0, 9),
        (1, 0, 9),
    ]


def test_a_target_lacks_what_the_newest_generation_says_it_got() -> None:
    key, place = ("orders", 0), ("east.orders", 0)
    extents = [extent(0, 200, 200), extent(0, 50, 50, target_generation=1)]
    assert shortfalls(extents, {key}, {place: 50}) == [], (
        "the generation before it is gone, and that is known"
    )
    (short,) = shortfalls(extents, {key}, {place: 49})
    assert (
        short.missing == 1
        and "ends at 49" in short.detail()
        and "up to offset 49" in short.detail()
    )
    (gone,) = shortfalls(extents, {key}, {})
    assert gone.missing == 50 and "is not there" in gone.detail()
    assert shortfalls(extents, set(), {}) == [], "it is not mirrored any more"


def gap_row(given_up: tuple[int, int] | None = None, topic: str = "orders") -> dict[str, object]:
    first, last = given_up or (None, None)
    place = {"flow": FLOW, "topic": topic, "partition": 0, "generation": 0}
    found = {"first_offset": 0, "last_offset": 99, "missing": 9}
    return {**place, **found, "given_first": first, "given_last": last}


def test_a_gap_has_each_offset_that_was_given_up_once() -> None:
    rows = [gap_row((40, 49)), gap_row((10, 19)), gap_row((45, 60)), gap_row(None, "other")]
    orders, other = gaps_of(rows)
    assert (orders.topic, orders.missing) == ("orders", 9)
    assert orders.given_up == [(10, 19), (40, 60)]
    assert (other.topic, other.given_up) == ("other", [])
    assert orders.without(4).missing == 5


def test_what_was_given_up_is_counted_by_the_index_but_for_an_end_in_a_file_with_holes() -> None:
    index = StageIndex()
    for number, (first, last, count) in enumerate(
        [(0, 9, 10), (10, 19, 3), (20, 29, 10), (30, 39, 4), (50, 59, 1)]
    ):
        staged = StagedRange("east", "orders", 0, 0, first, last, count)
        index.apply([(f"file-{number}", [staged])], (), number)
    of_partition = index.topics("east")["orders"][0]
    (gap,) = gaps_of([gap_row((5, 24))])
    assert gap.staged_of_it(of_partition) == (5 + 3 + 5, [])
    (gap,) = gaps_of([gap_row((28, 31)), gap_row((38, 59))])
    assert gap.staged_of_it(of_partition) == (2 + 1, [(30, 31), (38, 39)])
