"""Which samples are written: what changed, what holds for long, and always one."""

import random

from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.samples import HELD_SECONDS, LAGGING_SECONDS, SampleLog

Ends = dict[TopicAndPartition, tuple[int, ...]]


def turn(
    log: SampleLog[tuple[int, ...]], at: float, samples: Ends, lagging: frozenset[TopicAndPartition]
) -> Ends:
    """One turn, as a sampler takes it: what it writes."""
    written = {key: samples[key] for key in log.due(at, samples, lagging)}
    log.note(at, {**written, **dict.fromkeys(log.lost(samples))})
    return written


def partitions(count: int) -> Ends:
    return {("orders", number): (7,) for number in range(count)}


def test_what_changed_is_written_and_what_was_written_longest_ago() -> None:
    log: SampleLog[tuple[int, ...]] = SampleLog()
    samples = partitions(5)
    assert turn(log, 1000.0, samples, frozenset()) == samples, "nothing is known of an earlier one"
    samples[("orders", 3)] = (8,)
    assert turn(log, 1010.0, samples, frozenset()) == {("orders", 3): (8,), ("orders", 0): (7,)}
    assert turn(log, 1020.0, samples, frozenset()) == {("orders", 1): (7,)}, (
        "each in its turn: the flow is alive"
    )
    assert turn(log, 1030.0, {}, frozenset()) == {}


def test_a_partition_that_is_not_sampled_any_more_is_lost_once_and_written_when_it_is_back() -> (
    None
):
    log: SampleLog[tuple[int, ...]] = SampleLog()
    samples = partitions(2)
    turn(log, 1000.0, samples, frozenset())
    kept = {("orders", 1): (7,)}
    assert log.lost(kept) == {("orders", 0): (7,)}
    turn(log, 1010.0, kept, frozenset())
    assert log.lost(kept) == {}
    assert ("orders", 0) in turn(log, 1020.0, samples, frozenset())


def test_a_clock_that_is_set_back_holds_no_sample_for_ever() -> None:
    log: SampleLog[tuple[int, ...]] = SampleLog()
    turn(log, 9000.0, partitions(3), frozenset())
    assert len(turn(log, 1000.0, partitions(3), frozenset())) == 3


def test_an_idle_day_and_a_day_in_which_a_tenth_moves() -> None:
    """In fast motion: rows are bounded by what moves, and every reader finds what it looks back
    for."""
    for moving, most in ((0, 24 * 60 + 8640 + 60), (6, 6 * 8640 + 24 * 54 + 8640 + 60)):
        log: SampleLog[tuple[int, ...]] = SampleLog()
        samples, written_at, rows = partitions(60), dict.fromkeys(partitions(60), 0.0), 0
        for at in range(0, 86_400, 10):
            samples.update({("orders", number): (at,) for number in range(moving)})
            turned = turn(log, float(at), samples, frozenset())
            written_at.update(dict.fromkeys(turned, float(at)))
            rows += len(turned)
            assert turned and at - min(written_at.values()) <= HELD_SECONDS
        assert rows <= most


def test_each_of_many_idle_partitions_is_written_once_an_hour() -> None:
    """There are more of them than turns in an hour: readers look back no further than that."""
    log: SampleLog[tuple[int, ...]] = SampleLog()
    samples, written_at, rows = partitions(800), dict.fromkeys(partitions(800), 0.0), 0
    for at in range(0, 4 * 3600, 10):
        turned = turn(log, float(at), samples, frozenset())
        written_at.update(dict.fromkeys(turned, float(at)))
        rows += len(turned)
        assert at - min(written_at.values()) < HELD_SECONDS
    assert rows <= 5 * 800


def test_what_lags_is_written_in_each_minute() -> None:
    """Turns are never exactly ten seconds apart."""
    chance = random.Random(7)
    log: SampleLog[tuple[int, ...]] = SampleLog()
    lagging = frozenset({("orders", 4)})
    at, minutes = 0.0, set()
    samples = partitions(100)
    while at < 7200:
        if ("orders", 4) in turn(log, at, samples, lagging):
            minutes.add(int(at // 60))
        at += chance.uniform(10.0, 13.0)
    assert minutes == set(range(120)) and LAGGING_SECONDS < 60


def test_where_writing_has_its_price_nothing_new_waits() -> None:
    """What is aside is never news, and is written with what is."""
    log: SampleLog[tuple[int, ...]] = SampleLog(pause=120.0)
    samples = {**partitions(2), ("heartbeats", 0): (1,)}

    def written(at: float, *lagging: TopicAndPartition) -> list[TopicAndPartition]:
        keys = log.due(at, samples, frozenset(lagging), lambda key: key[0] == "heartbeats")
        log.note(at, {key: samples[key] for key in keys})
        return keys

    assert len(written(1000.0)) == 3, "the first of a process says that the flow runs"
    samples["heartbeats", 0] = (2,)
    assert written(1010.0, ("heartbeats", 0)) == []
    samples["orders", 1] = (8,)
    assert written(1020.0) == [("orders", 1), ("heartbeats", 0), ("orders", 0)]
    samples["heartbeats", 0] = (3,)
    assert written(1139.0) == []
    assert written(1140.0) == [("heartbeats", 0), ("orders", 0)]
    assert written(1200.0, ("orders", 1)) == [("orders", 1), ("heartbeats", 0)], "it lags"
    assert written(1190.0) != [], "a clock that went back"
