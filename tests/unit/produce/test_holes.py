"""What of the stage a flow lacks, told from what retention noted, from the map's end and from what
is still there."""

from datetime import datetime, timedelta

from mirrorlake.lake.retention import Removal
from mirrorlake.offsets.generations import TargetGeneration
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.offsets.progress import Floor
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.produce.holes import Hole, find_holes, lacking

KEY = ("orders", 0)


def named(topic: str) -> str | None:
    """Every topic but one is produced."""
    return None if topic == "paused" else f"east.{topic}"


def removal(
    first: int, below: int, generation: int = 0, topic: str = "orders", at: datetime | None = None
) -> Removal:
    """What was deleted of a topic's partition 0."""
    return Removal("east", topic, 0, generation, first, below, at)


def holes(
    removals: list[Removal],
    floor: Floor | None,
    *there: tuple[int, int, int],
    accepted: tuple[tuple[int, int], ...] = (),
    accepted_in: int = 0,
    stopped: tuple[int, ...] = (),
    target: TargetGeneration | None = None,
    forgotten: bool = False,
    begun: datetime | None = None,
) -> list[tuple[int, int, int]]:
    """Holes of orders-0 as (generation, first, last); `there` are its ranges: generation, first and
    last."""
    index = StageIndex()
    ranges = [
        StagedRange("east", *KEY, generation, first, last, last - first + 1)
        for generation, first, last in there
    ]
    index.apply([("a file", ranges)], (), 1)
    floors = {} if floor is None else {KEY: floor}
    over = [PartitionGeneration(*KEY, generation) for generation in stopped]
    targets = {} if target is None else {"east.orders": target}
    times = {} if begun is None else {"east.orders": begun}
    candidates = lacking(removals, floors, named, targets, over, begun=times)
    ranges_accepted = {PartitionGeneration(*KEY, accepted_in): OffsetRanges(accepted)}
    emptied = {PartitionGeneration(*KEY, 0)} if forgotten else frozenset()
    found = list(
        find_holes(candidates, floors, index, "east", accepted=ranges_accepted, forgotten=emptied)
    )
    assert all(isinstance(hole, Hole) and (hole.topic, hole.partition) == KEY for hole in found)
    return [(hole.generation, hole.first, hole.last) for hole in found]


def test_what_was_deleted_behind_the_maps_end_is_a_hole() -> None:
    assert holes([removal(0, 80)], Floor(20, 20), (0, 80, 99)) == [(0, 20, 79)]
    assert holes([removal(0, 80)], Floor(20, 20, reached=50), (0, 80, 99)) == [(0, 50, 79)]


def test_what_was_produced_before_is_none_and_neither_is_a_gap_of_the_source() -> None:
    assert holes([removal(0, 80)], Floor(80, 80), (0, 80, 99)) == []
    assert holes([removal(0, 20)], Floor(20, 20), (0, 90, 99)) == [], (
        "20 to 89 were compacted away at the source"
    )


def test_what_was_noted_and_not_deleted_is_none() -> None:
    assert holes([removal(0, 80)], Floor(20, 20), (0, 0, 99)) == []
    assert holes([removal(0, 80)], Floor(20, 20), (0, 50, 99)) == [(0, 20, 49)], "deleted in part"


def test_a_flow_that_has_nothing_of_a_partition_lacks_all_that_went() -> None:
    assert holes([removal(7, 80)], None, (0, 80, 99)) == [(0, 7, 79)]


def test_a_flow_that_comes_later_lacks_what_landing_passed_over() -> None:
    assert holes([removal(0, 10)], None, (0, 10, 15)) == [(0, 0, 9)]
    assert holes([removal(0, 10)], Floor(0, None, reached=6), (0, 10, 15)) == [(0, 6, 9)], (
        "it begins at 6 itself"
    )
    assert holes([removal(0, 10)], Floor(0, None, reached=10), (0, 10, 15)) == []
    assert holes([removal(0, 10)], None) == [], (
        "nothing is staged: landing begins where this flow wants it"
    )
    assert holes([removal(0, 10)], None, forgotten=True) == [(0, 0, 9)]
    assert holes([removal(0, 10)], None, (0, 0, 15)) == [], "it was read from the source since"


def test_a_target_topic_that_was_made_again_gets_what_the_stage_holds() -> None:
    assert holes([removal(0, 80)], None, (0, 80, 99), target=TargetGeneration(1, 1)) == []
    assert holes([removal(0, 80)], Floor(20, 20), (0, 80, 99), target=TargetGeneration(1, 0)) == [
        (0, 20, 79)
    ]


def test_of_a_target_topic_that_was_made_again_what_is_deleted_later_is_a_hole() -> None:
    """Also of a partition that has nothing yet."""
    again, then = TargetGeneration(1, 1), datetime(2026, 11, 30)
    later, there = then + timedelta(days=9), (0, 80, 99)
    assert holes([removal(0, 80, at=later)], None, there, target=again, begun=then) == [(0, 0, 79)]
    assert holes([removal(0, 80, at=then)], None, there, target=again, begun=later) == []
    assert holes([removal(0, 80, at=later)], None, there, target=again) == []
    soon = then + timedelta(minutes=4)
    assert holes([removal(0, 80, at=then)], None, there, target=again, begun=soon) == [
        (0, 0, 79)
    ], "clocks of two hosts differ"


def test_of_one_that_goes_on_where_the_one_before_ended_all_that_it_lacks_is_a_hole() -> None:
    goes_on = TargetGeneration(1, 0)
    assert holes([removal(0, 80)], None, (0, 80, 99), target=goes_on) == [(0, 0, 79)]


def test_each_generation_is_checked_and_one_is_told_at_a_time() -> None:
    gone = [removal(0, 60, 1), removal(0, 100, 0)]
    there = (1, 60, 70)
    assert holes(gone, Floor(20, 20), there) == [(0, 20, 99)]
    assert holes(gone, Floor(20, 20), there, accepted=((20, 99),)) == [(1, 0, 59)]
    assert holes(gone, Floor(20, 20), there, accepted=((0, 99),)) == [(1, 0, 59)], (
        "each is accepted by itself"
    )
    assert holes(gone, Floor(99, 99, generation=0), there, accepted=((99, 99),), stopped=(1,)) == []
    assert holes(gone, Floor(20, 20), there, stopped=(0,)) == [(1, 0, 59)]
    assert (
        holes(gone, Floor(10, 10, generation=1), there, accepted=((10, 59),), accepted_in=1) == []
    )
    assert holes(gone, Floor(10, 10, generation=1), there) == [(1, 10, 59)], (
        "the previous generation is behind it"
    )


def test_one_that_grew_since_it_was_accepted_is_told_again() -> None:
    assert holes([removal(0, 80)], Floor(20, 20), (0, 80, 99), accepted=((20, 69),)) == [
        (0, 20, 79)
    ]


def test_a_topic_that_is_not_produced_lacks_nothing() -> None:
    assert lacking([removal(0, 80, topic="paused")], {}, named, {}) == {}
