"""How a landing query asks where the logs of its source end."""

from collections.abc import Collection, Iterator, Mapping
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import ClusterUnreachable
from mirrorlake.landing import source_ends
from mirrorlake.landing.quiet_logs import ALL_SECONDS
from mirrorlake.landing.source_ends import CALM_SECONDS, PATIENCE_SECONDS, WATCHED_FROM, SourceEnds
from mirrorlake.native.library import NativeUnavailable
from mirrorlake.offsets.positions import TopicAndPartition
from tests.support.calls import calls_of
from tests.support.mock_kafka import mock_brokers, mock_kafka, write_to_mock
from tests.support.waiting import until

FEW = {("t", number): 5 for number in range(WATCHED_FROM - 1)}
MANY = {("t", number): 5 for number in range(WATCHED_FROM)}


class Cluster:
    """Answers with what it has, and counts what it was asked."""

    alias = "east"
    refused_at = float("-inf")

    def __init__(self, ends: Mapping[TopicAndPartition, int]) -> None:
        self.ends, self.asked = dict(ends), list[int]()

    def of(self, keys: Collection[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        self.asked.append(len(keys))
        return {key: self.ends[key] for key in keys if key in self.ends}

    def end_offsets(
        self, keys: Collection[TopicAndPartition], **_how: bool
    ) -> dict[TopicAndPartition, int]:
        return self.of(keys)


class Watch:
    """Tells what a test says."""

    def __init__(self) -> None:
        self.told, self.failing, self.closed = set[TopicAndPartition](), False, False
        self.watched: dict[TopicAndPartition, int] = {}

    def moved(self) -> set[TopicAndPartition]:
        if self.failing:
            raise KafkaException(KafkaError(KafkaError._FAIL))
        told, self.told = self.told, set()
        return told

    def watch(self, ends: Mapping[TopicAndPartition, int]) -> None:
        self.watched |= ends

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0, spent=0.0)
    clock.monotonic, clock.process_time = lambda: clock.now, lambda: clock.spent
    monkeypatch.setattr(source_ends, "time", clock)
    return clock


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace) -> Iterator[Watch]:
    watch = Watch()
    monkeypatch.setattr(source_ends, "open_watch", lambda _settings: watch)
    yield watch


def asking(cluster: Cluster) -> SourceEnds:
    ends = SourceEnds("east", {"bootstrap.servers": "127.0.0.1:1"})
    ends._admin = ends._arriving = cluster  # type: ignore[assignment]
    return ends


def quiet_for(ends: SourceEnds, clock: SimpleNamespace, seconds: float) -> None:
    for _ in range(round(seconds)):
        ends.known(MANY)
        clock.now += 1.0


def test_few_partitions_are_asked_for_each_time(watch: Watch, clock: SimpleNamespace) -> None:
    cluster = Cluster(FEW)
    ends = asking(cluster)
    assert [ends.known(FEW) for _ in range(30)] == [FEW] * 30
    assert cluster.asked == [len(FEW)] * 30 and not watch.watched


def test_many_quiet_ones_are_watched(watch: Watch, clock: SimpleNamespace) -> None:
    cluster = Cluster(MANY)
    ends = asking(cluster)
    quiet_for(ends, clock, 30)
    assert watch.watched == MANY
    cluster.asked.clear()
    quiet_for(ends, clock, 60)
    assert sorted(filter(None, cluster.asked)) == [len(MANY)] * 6
    cluster.ends["t", 3], watch.told = 6, {("t", 3)}
    assert ends.known(MANY)["t", 3] == 6


def test_what_an_idle_source_is_asked_a_minute_is_bounded(
    watch: Watch, clock: SimpleNamespace
) -> None:
    """Each partition six times, whatever there are, at three turns a second."""
    for size in (WATCHED_FROM, 10 * WATCHED_FROM):
        reached = {("t", number): 5 for number in range(size)}
        cluster = Cluster(reached)
        ends = asking(cluster)

        def turns(seconds: float) -> None:
            for _ in range(round(3 * seconds)):
                ends.known(reached)  # noqa: B023 - called in this round
                clock.now += 1 / 3

        turns(60)
        cluster.asked.clear()
        turns(60)
        assert sorted(filter(None, cluster.asked)) == [size] * 6


def test_a_watch_that_fails_leaves_the_asking_for_a_minute(
    watch: Watch, clock: SimpleNamespace
) -> None:
    cluster = Cluster(MANY)
    ends = asking(cluster)
    quiet_for(ends, clock, 30)
    watch.failing, cluster.ends["t", 3] = True, 6
    for _ in range(3):
        assert ends.known(MANY)["t", 3] == 6
    assert watch.closed and cluster.asked[-3:] == [len(MANY)] * 3
    watch.failing, watch.watched = False, {}
    reached = dict(cluster.ends)
    for _ in range(90):
        assert ends.known(reached) == reached
        clock.now += 1.0
    assert watch.watched == reached, "another one knows nothing of what was left to the first"
    cluster.ends["t", 4], watch.told = 7, {("t", 4)}
    assert ends.known(reached)["t", 4] == 7


def test_a_watch_that_is_deaf_makes_way_for_another_one(
    monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    """Its fetch is never answered, or without the records: nothing fails, and each first record of
    a quiet log waited until all were asked, for as long as the query ran."""
    opened = list[Watch]()

    def open_watch(_settings: Mapping[str, object]) -> Watch:
        opened.append(Watch())
        return opened[-1]

    monkeypatch.setattr(source_ends, "open_watch", open_watch)
    cluster = Cluster(MANY)
    ends = asking(cluster)
    quiet_for(ends, clock, 30)
    for number, logged in ((3, "WARNING"), (4, None), (5, "INFO")):
        caplog.clear()
        cluster.ends["t", number] += 1
        reached = dict(cluster.ends)
        with caplog.at_level("INFO", "mirrorlake.landing.source_ends"):
            for _ in range(60):
                ends.known(reached)
                clock.now += 1.0
        assert [record.levelname for record in caplog.records] == ([logged] if logged else [])
        assert opened[-1].watched.keys() == reached.keys(), "all are left to a watch again"
        clock.now += 250.0
    assert len(opened) == 3 and [watch.closed for watch in opened] == [True, True, False]


def test_while_leaders_change_no_log_is_watched(watch: Watch, clock: SimpleNamespace) -> None:
    """librdkafka read beyond its memory at an answer that named leaders of some watched logs and
    none of others, and ended the process."""
    cluster = Cluster(MANY)
    ends = asking(cluster)
    quiet_for(ends, clock, 30)
    cluster.refused_at, watch.watched = clock.now, {}
    cluster.asked.clear()
    cluster.ends["t", 3] = 6
    reached = dict(cluster.ends)
    for _ in range(round(CALM_SECONDS)):
        ends.known(reached)
        clock.now += 1.0
    assert watch.closed and not watch.watched
    assert cluster.asked.count(len(MANY)) <= 1 + CALM_SECONDS // ALL_SECONDS
    assert ends.known(reached)["t", 3] == 6, "it is noticed when all are asked"
    for _ in range(30):
        ends.known(reached)
        clock.now += 1.0
    assert watch.watched == reached, "the next watch has all of them"


def test_a_watch_that_tells_soon_stays(watch: Watch, clock: SimpleNamespace) -> None:
    """All may be asked just before it tells."""
    cluster = Cluster(MANY)
    ends = asking(cluster)
    quiet_for(ends, clock, 30)
    for number in range(20):
        cluster.ends["t", number] += 1
        for second in range(10):
            if second == 4:
                watch.told = {("t", number)}
            ends.known(dict(cluster.ends))
            clock.now += 1.0
    assert not watch.closed


def test_without_the_compiled_part_all_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace
) -> None:
    monkeypatch.setattr(source_ends, "open_watch", lambda _settings: None)
    cluster = Cluster(MANY)
    quiet_for(asking(cluster), clock, 30)
    assert cluster.asked == [len(MANY)] * 30


@pytest.mark.parametrize("reached", [FEW, MANY])
def test_a_cluster_that_is_silent_for_long_ends_the_query(
    watch: Watch, clock: SimpleNamespace, reached: Mapping[TopicAndPartition, int]
) -> None:
    """What nothing is asked of is not silent."""
    cluster = Cluster(reached)
    ends = asking(cluster)
    for _ in range(60):
        ends.known(reached)
        clock.now += 1.0
    cluster.ends.clear()
    for _ in range(int(PATIENCE_SECONDS)):
        ends.known(reached)
        clock.now += 1.0
    with pytest.raises(ClusterUnreachable, match="east"):
        for _ in range(12):
            ends.known(reached)
            clock.now += 1.0


def test_a_note_takes_a_hundredth_of_the_time_at_most(
    monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace
) -> None:
    """Where it takes next to none there is one for each batch."""
    cluster = Cluster(MANY | {("t", 1): 9})
    ends = asking(cluster)
    assert [ends.noted(MANY, MANY) for _ in range(3)] == ['[["t",1,5,9]]'] * 3
    asked = cluster.end_offsets

    def slowly(*given: object, **named: object) -> Mapping[TopicAndPartition, int]:
        clock.spent += 0.01
        return asked(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(cluster, "end_offsets", slowly)
    assert ends.noted(MANY, MANY) is not None and ends.noted(MANY, MANY) is None
    clock.now += 0.9
    assert ends.noted(MANY, MANY) is None
    clock.now += 0.2
    assert ends.noted(MANY, MANY) is not None


def test_the_first_record_of_a_quiet_partition_is_known_by_the_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With clients of librdkafka, and its own stand-in for a broker."""
    monkeypatch.setattr(source_ends, "WAIT_SECONDS", 0.0)
    reached = {("t", number): 0 for number in range(WATCHED_FROM)}
    with mock_kafka({"t": WATCHED_FROM}) as address:
        ends = SourceEnds("east", {"bootstrap.servers": address, "log_level": 0})
        asked = calls_of(ends._arriving, "of", len)
        assert ends.known(reached) == reached
        until(lambda: ends.known(reached) == reached and len(asked) > 10, "it is quiet", 20)
        assert asked[0] == WATCHED_FROM and asked[2:] == [0] * (len(asked) - 2)
        write_to_mock(address, "t", [7])
        until(lambda: ends.known(reached)["t", 7] == 1, "the record is known", 20)
        reached["t", 7] = 1
        assert ends.known(reached) == reached
        assert asked[-1] == 1 and asked.count(WATCHED_FROM) <= 3
        ends._end_watch()


def test_a_watch_that_cannot_be_opened_is_done_without(
    monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace
) -> None:
    def open_watch(_settings: Mapping[str, object]) -> Watch:
        raise NativeUnavailable("a setting that it does not know")

    monkeypatch.setattr(source_ends, "open_watch", open_watch)
    cluster = Cluster(MANY)
    ends = asking(cluster)
    assert [ends.known(MANY) for _ in range(3)] == [MANY] * 3
    assert cluster.asked == [len(MANY)] * 3


def test_a_leader_that_does_not_answer_holds_up_no_batch_of_the_others() -> None:
    """Each question took 15 s, in which no record of any partition was landed."""
    reached = {("t", number): 0 for number in range(4)}
    others = {("t", 0): 0, ("t", 2): 0}
    with mock_brokers({"t": 4}, 2) as kafka:
        for _, number in reached:
            kafka.lead("t", number, 1 + number % 2)
        ends = SourceEnds("east", {"bootstrap.servers": kafka.address, "log_level": 0})
        until(lambda: ends.known(reached) == reached, "all answer", 20)
        kafka.answer_after(2, 60.0)
        until(lambda: ends.known(reached) == others, "one is silent", 5)
        write_to_mock(kafka.address, "t", [2])
        until(lambda: ends.known(reached) == others | {("t", 2): 1}, "the record is known", 2)
