"""Since when a partition with records that wait has not moved."""

from mirrorlake.offsets.lag import Stalls
from mirrorlake.offsets.positions import PartitionGeneration

KEY = PartitionGeneration("orders", 0, 0)


def test_a_partition_stands_since_it_moved_or_had_nothing_to_do() -> None:
    stalls, seen = Stalls(60.0), list[float | None]()
    for at, (produced, waiting) in enumerate(((5, 2), (5, 3), (6, 2), (6, 2), (8, 0), (8, 1))):
        seen.append(stalls.observe(KEY, at, produced, waiting))
    # when it has nothing to do it does not stand still: what comes then waits from there on
    assert seen == [0, 0, 2, 2, None, 4]


def test_what_an_earlier_process_saw_goes_on() -> None:
    stalls = Stalls(60.0)
    stalls.seed(KEY, 5, 10.0, 95.0)
    assert stalls.observe(KEY, 100.0, 5, 1) == 10.0
    assert stalls.observe(KEY._replace(generation=1), 100.0, 5, 1) == 100.0, "another log"
    stalls.seed(KEY, 5, 10.0, 95.0)
    assert stalls.observe(KEY, 100.0, 6, 1) == 100.0, "it has moved since"


def test_what_was_seen_at_a_time_to_come_is_of_a_clock_that_was_wrong() -> None:
    stalls = Stalls(60.0)
    stalls.seed(KEY, 5, 4_000.0, 4_000.0)
    assert stalls.observe(KEY, 100.0, 5, 1) == 100.0
    assert stalls.observe(KEY, 110.0, 5, 1) == 100.0


def test_time_in_which_nothing_was_sampled_does_not_count() -> None:
    """Nobody stood still: no process ran the flow, or a cluster was away."""
    stalls = Stalls(60.0)
    stalls.seed(KEY, 5, 10.0, 110.0)
    assert stalls.observe(KEY, 28_910.0, 5, 1) == 28_810.0, "for the 100 s in which one ran"
    assert stalls.observe(KEY, 28_970.0, 5, 1) == 28_810.0, "samples come now and then"
    assert stalls.observe(KEY, 30_000.0, 5, 1) == 29_840.0, "for 160 s"
    assert stalls.observe(KEY, 200.0, 5, 1) == 200.0, "of a clock that went back"


def test_what_is_no_partition_of_the_flow_is_forgotten() -> None:
    stalls = Stalls(60.0)
    stalls.seed(KEY, 5, 10.0, 95.0)
    stalls.keep([])
    assert stalls.observe(KEY, 100.0, 5, 1) == 100.0
