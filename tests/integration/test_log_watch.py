"""A watch tells of the first committed record of a quiet partition, and landing asks for the ends
of few partitions by it."""

import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import closing

import pytest

from mirrorlake.landing.quiet_logs import QuietLogs
from mirrorlake.landing.source_ends import SourceEnds
from mirrorlake.native.watch import LogWatch
from tests.support.clusters import ClusterPair
from tests.support.kafka import (
    NewRecord,
    create_topic,
    transactional_producer,
    truncate,
    write,
)
from tests.support.waiting import until

PARTITIONS = 250
#: How long nothing is told where nothing is to be, seconds.
NOTHING_SECONDS = 1.0


@pytest.fixture
def topic(clusters: ClusterPair) -> str:
    name = f"watched-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.east, name, PARTITIONS)
    return name


@pytest.fixture
def watch(clusters: ClusterPair) -> Iterator[LogWatch]:
    with closing(LogWatch({"bootstrap.servers": clusters.east, "log_level": 2})) as watch:
        yield watch


def told(watch: LogWatch, numbers: Collection[int]) -> set[int]:
    """What a watch tells, until it has told of all these."""
    partitions: set[int] = set()

    def all_of_them() -> bool:
        partitions.update(number for _, number in watch.moved())
        return partitions >= set(numbers)

    until(all_of_them, "the watch tells of all", 20)
    return partitions


def tells_nothing(watch: LogWatch) -> bool:
    """Whether it tells of none for some time."""
    end, partitions = time.monotonic() + NOTHING_SECONDS, set[tuple[str, int]]()

    def over() -> bool:
        partitions.update(watch.moved())
        return bool(partitions) or time.monotonic() > end

    until(over, "time is over")
    return not partitions


def test_a_watch_tells_of_a_record_at_once_and_once(
    clusters: ClusterPair, topic: str, watch: LogWatch
) -> None:
    watch.watch({(topic, number): 0 for number in range(PARTITIONS)})
    assert tells_nothing(watch)
    write(clusters.east, topic, [NewRecord(b"1", partition=7)])
    began = time.monotonic()
    assert told(watch, [7]) == {7}
    assert time.monotonic() - began < 2.0, "not only when the brokers have waited for long"
    write(clusters.east, topic, [NewRecord(b"2", partition=7)])
    assert tells_nothing(watch), "it is watched no more"
    watch.watch({(topic, 7): 2})
    assert tells_nothing(watch)
    watch.watch({(topic, 7): 1})
    assert told(watch, [7]) == {7}, "from an offset in front of the end"


def test_many_that_begin_together_are_all_told(
    clusters: ClusterPair, topic: str, watch: LogWatch
) -> None:
    watch.watch({(topic, number): 0 for number in range(PARTITIONS)})
    write(clusters.east, topic, [NewRecord(b"x" * 9_000, partition=n) for n in range(200)])
    assert told(watch, range(200)) == set(range(200))


def test_only_what_is_committed_is_told(clusters: ClusterPair, topic: str, watch: LogWatch) -> None:
    watch.watch({(topic, number): 0 for number in range(PARTITIONS)})
    producer = transactional_producer(clusters.east)
    producer.begin_transaction()
    producer.produce(topic, b"aborted", partition=1)
    producer.flush(10)
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"committed", partition=2)
    producer.flush(10)
    assert tells_nothing(watch), "an aborted record and an open transaction"
    producer.commit_transaction(30)
    assert told(watch, [2]) == {2}


def behind_the_end(bootstrap: str, topic: str) -> int:
    return 5


def in_front_of_the_start(bootstrap: str, topic: str) -> int:
    write(bootstrap, topic, [NewRecord(b"1"), NewRecord(b"2")])
    truncate(bootstrap, topic, 2)
    return 1


@pytest.mark.parametrize("place", [behind_the_end, in_front_of_the_start])
def test_a_log_that_does_not_reach_to_where_it_is_watched_is_told(
    clusters: ClusterPair, topic: str, watch: LogWatch, place: Callable[[str, str], int]
) -> None:
    watch.watch({(topic, 0): place(clusters.east, topic)})
    assert told(watch, [0]) == {0}


def test_landing_asks_for_what_moves(clusters: ClusterPair, topic: str) -> None:
    ends = SourceEnds("east", {"bootstrap.servers": clusters.east, "log_level": 2})
    ends._quiet = QuietLogs(0.0)
    asked, ask = list[int](), ends._admin.end_offsets

    def counting(keys: Collection[tuple[str, int]], **given: bool) -> dict[tuple[str, int], int]:
        asked.append(len(keys))
        return ask(keys, **given)

    ends._admin.end_offsets = counting  # type: ignore[method-assign, assignment]
    reached = {(topic, number): 0 for number in range(PARTITIONS)}
    assert ends.known(reached) == reached
    until(lambda: ends.known(reached) == reached and len(asked) > 20, "some turns")
    assert asked[0] == PARTITIONS and asked[2:] == [0] * (len(asked) - 2)
    write(clusters.east, topic, [NewRecord(b"1", partition=7)])
    until(lambda: ends.known(reached)[topic, 7] == 1, "the record is known", 2.0)
    reached[topic, 7] = 1
    assert ends.known(reached) == reached and asked[-1] == 1
