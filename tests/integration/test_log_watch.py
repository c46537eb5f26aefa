"""A watch tells of the first committed record of a quiet partition, and landing asks for the ends
of few partitions by it."""

import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.landing import source_ends
from mirrorlake.landing.quiet_logs import ALL_SECONDS, SOON_SECONDS
from mirrorlake.landing.source_ends import SourceEnds
from mirrorlake.native.watch import WAIT_SECONDS, LogWatch
from tests.support.calls import calls_of
from tests.support.clusters import ClusterPair
from tests.support.kafka import (
    NewRecord,
    create_topic,
    delete_topic,
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


def tells_nothing(watch: LogWatch, seconds: float = NOTHING_SECONDS) -> bool:
    """Whether it tells of none for some time."""
    end, partitions = time.monotonic() + seconds, set[tuple[str, int]]()

    def over() -> bool:
        partitions.update(watch.moved())
        return bool(partitions) or time.monotonic() > end

    until(over, "time is over")
    return not partitions


def test_a_watch_tells_of_a_record_at_once_and_once(
    clusters: ClusterPair, topic: str, watch: LogWatch
) -> None:
    watch.watch({(topic, number): 0 for number in range(PARTITIONS)})
    # the first fetch is of those whose leader was known first
    assert tells_nothing(watch, WAIT_SECONDS + 1)

    def seconds_to_tell(partition: int) -> float:
        write(clusters.east, topic, [NewRecord(b"1", partition=partition)])
        began = time.monotonic()
        assert told(watch, [partition]) == {partition}
        return time.monotonic() - began

    # one after the other: any of them may be late on a busy machine
    quickest = min(map(seconds_to_tell, (7, 8, 9)))
    assert quickest < 2.0, "not only when the brokers have waited for long"
    write(clusters.east, topic, [NewRecord(b"2", partition=7)])
    assert tells_nothing(watch), "it is watched no more"
    watch.watch({(topic, 7): 2})
    assert tells_nothing(watch)
    watch.watch({(topic, 7): 1})
    assert told(watch, [7]) == {7}, "from an offset in front of the end"


def test_many_that_begin_together_are_told_by_few_fetches(
    clusters: ClusterPair, topic: str, watch: LogWatch
) -> None:
    """One by one it took a tenth of a second for each, at least."""
    watch.watch({(topic, number): 0 for number in range(PARTITIONS)})
    assert tells_nothing(watch)
    all_of_them = [NewRecord(b"x" * 9_000, partition=number) for number in range(PARTITIONS)]
    write(clusters.east, topic, all_of_them)
    began = time.monotonic()
    assert told(watch, range(PARTITIONS)) == set(range(PARTITIONS))
    assert time.monotonic() - began < 5.0


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


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given to the watch is left to it at once, and what just began is given to it."""
    monkeypatch.setattr(source_ends, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(source_ends, "CALM_SECONDS", 0.5)


@pytest.fixture
def ends(clusters: ClusterPair, at_once: None) -> Iterator[SourceEnds]:
    ends = SourceEnds("east", {"bootstrap.servers": clusters.east, "log_level": 2})
    yield ends
    ends._end_watch()


def counted(ends: SourceEnds) -> list[int]:
    """How many partitions are asked for, each time."""
    return calls_of(ends._arriving, "of", len)


def settled(ends: SourceEnds, reached: dict[tuple[str, int], int]) -> None:
    """Go on until all are left to the watch, and the fetch is over that was under way when it was
    given the last of them: in production a partition is asked for until then. A partition that is
    not answered in time, as on a machine with much else to do, is asked for again."""
    # a partition of a new topic may have no leader yet
    until(lambda: ends.known(reached) == reached, "all leaders are known")
    asked, given_at = counted(ends), time.monotonic()

    def quiet() -> bool:
        nonlocal given_at
        known = ends.known(reached)
        assert known.items() <= reached.items()
        if asked[-1] or len(known) < len(reached):
            given_at = time.monotonic()
        return time.monotonic() - given_at > WAIT_SECONDS + 1

    until(quiet, "all are quiet")


@pytest.mark.wide("test_a_watch_tells_of_a_record_at_once_and_once")
def test_landing_asks_for_what_moves(clusters: ClusterPair, topic: str, ends: SourceEnds) -> None:
    reached = {(topic, number): 0 for number in range(PARTITIONS)}
    settled(ends, reached)
    asked = counted(ends)
    write(clusters.east, topic, [NewRecord(b"1", partition=7)])
    until(lambda: ends.known(reached).get((topic, 7)) == 1, "the record is known", 2.0)
    reached[topic, 7] = 1
    until(lambda: ends.known(reached) == reached and asked[-1] == 1, "it alone is asked for", 5.0)


@pytest.mark.wide("test_many_that_begin_together_are_told_by_few_fetches")
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(10, marks=pytest.mark.slow),
        9_000,
        pytest.param(100_000, marks=pytest.mark.slow),
    ],
)
def test_many_quiet_logs_that_begin_together_are_all_known_soon(
    clusters: ClusterPair, topic: str, ends: SourceEnds, size: int
) -> None:
    """Also where the broker gives one batch alone in each answer."""
    reached = {(topic, number): 0 for number in range(PARTITIONS)}
    settled(ends, reached)
    all_of_them = [NewRecord(b"x" * size, partition=number) for number in range(PARTITIONS)]
    write(clusters.east, topic, all_of_them)
    wanted = dict.fromkeys(reached, 1)
    until(lambda: ends.known(reached) == wanted, "all are known", 2 * SOON_SECONDS)


@pytest.mark.slow
def test_a_topic_that_was_made_again_is_known_at_the_pace_of_all(
    clusters: ClusterPair, topic: str, ends: SourceEnds
) -> None:
    reached = {(topic, number): 0 for number in range(PARTITIONS)}
    settled(ends, reached)
    delete_topic(clusters.east, topic)
    create_topic(clusters.east, topic, PARTITIONS)
    write(clusters.east, topic, [NewRecord(b"1", partition=7)])
    known = partial(ends.known, reached)
    until(lambda: known().get((topic, 7)) == 1, "the record is known", ALL_SECONDS + 5.0)


@pytest.mark.slow
def test_a_watch_that_hears_nothing_delays_a_record_by_the_pace_of_all(
    clusters: ClusterPair, topic: str, ends: SourceEnds
) -> None:
    reached = {(topic, number): 0 for number in range(PARTITIONS)}
    settled(ends, reached)
    assert ends._watch is not None
    ends._watch._consumer.stop(reached)
    write(clusters.east, topic, [NewRecord(b"1", partition=7)])
    until(
        lambda: ends.known(reached).get((topic, 7)) == 1, "the record is known", ALL_SECONDS + 2.0
    )


@pytest.mark.slow
def test_a_log_whose_leader_moved_is_known_at_the_pace_of_all(
    tmp_path: Path, at_once: None
) -> None:
    """Three brokers, of which the leader of the partition is killed while its log is quiet."""
    with EmbeddedCluster("east", tmp_path, brokers=3, heap="256m") as cluster:
        address, name = cluster.bootstrap_servers, "led"
        admin = ClusterAdmin("east", {"bootstrap.servers": address, "log_level": 2})
        admin.create_topics([TopicInfo(name, PARTITIONS, 3)])
        until(lambda: len(led(admin, name)) == 3, "all brokers lead some")
        ends = SourceEnds("east", {"bootstrap.servers": address, "log_level": 2})
        reached = {(name, number): 0 for number in range(PARTITIONS)}
        settled(ends, reached)
        away = cluster.brokers - 1  # not the one that the others ask who leads
        port = int(address.split(",")[away].rpartition(":")[2])
        moved = led(admin, name)[port]
        cluster.kill(away)
        until(lambda: port not in led(admin, name), "others lead them")
        write(address, name, [NewRecord(b"1", partition=moved[0])])
        known = partial(ends.known, reached)
        until(lambda: known().get((name, moved[0])) == 1, "it is known", ALL_SECONDS + 30.0)
        ends._end_watch()


def led(admin: ClusterAdmin, topic: str) -> dict[int, list[int]]:
    """The partitions of a topic that each broker leads, by its port."""
    keys = [(topic, number) for number in range(PARTITIONS)]
    return {port: [n for _, n in places] for (_, port), places in admin.leaders(keys).items()}
