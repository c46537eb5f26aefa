"""A query without a session: what it lands, how it makes way for one, and how it ends."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.errors import ReplicationError
from mirrorlake.lake.small_batches import MANY
from mirrorlake.landing import batch_planner, driver_query
from mirrorlake.landing.driver_query import DriverQuery, apart
from mirrorlake.landing.sinks import PathSink
from mirrorlake.offsets.positions import Ends, TopicAndPartition
from tests.support.landing import job_in, lake_in
from tests.support.waiting import until

STARTS = {("a", 0): 5, ("a", 1): 0}
SMALL = 10


class Source:
    """Logs that end where a test says, as `SourceEnds` asks for them."""

    def __init__(self) -> None:
        self.ends: dict[TopicAndPartition, int] = dict(STARTS)
        self.asked, self.closed = threading.Event(), False
        self.error: Exception | None = None

    def known(self, _reached: Ends) -> Ends:
        self.asked.set()
        if self.error is not None:
            raise self.error
        return dict(self.ends)

    def noted(self, _ends: Ends, _log_ends: Ends) -> str:
        return "[]"

    def close(self) -> None:
        self.closed = True


class Session:
    """One that is there once a test says so."""

    over, begun = False, 0

    def begin(self) -> None:
        self.begun += 1


class Starting(Session):
    """Counts how often a query looks for it."""

    started, looks = False, 0

    @property
    def over(self) -> bool:  # type: ignore[override]
        self.looks += 1
        return self.started


class Sink(PathSink):
    """Keeps what it is to land."""

    def land(self, ranges: Any, noted: Any, batch: int, *_: Any, **__: Any) -> None:
        with self._in_hand:
            self._check_goes_on()
            self.landed.append((batch, dict(ranges), noted))
            self.meanwhile()

    landed: list[tuple[int, dict[TopicAndPartition, tuple[int, int]], str | None]]
    meanwhile: Callable[[], object] = staticmethod(lambda: None)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    made = Source()
    monkeypatch.setattr(batch_planner.BatchPlanner, "_log_ends", lambda _self: made)
    monkeypatch.setattr(batch_planner.BatchPlanner, "close", lambda _self: made.close())
    return made


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    job = job_in(tmp_path, starts=STARTS, small_batch_records=SMALL, trigger_seconds=0.01)
    made = Sink(lake_in(tmp_path), job, "application")
    made.landed = []
    return made


def query_of(sink: Sink, session: Session) -> DriverQuery:
    return DriverQuery(sink, sink._job, session)


def ended(query: DriverQuery) -> bool:
    until(lambda: not query.isActive, "the end of the query")
    return True


def offsets(sink: Sink) -> list[tuple[TopicAndPartition, int]]:
    return [
        (key, offset)
        for _, ranges, _ in sink.landed
        for key, bounds in ranges.items()
        for offset in range(*bounds)
    ]


def test_what_comes_is_landed_batch_by_batch(source: Source, sink: Sink) -> None:
    session = Session()
    query = query_of(sink, session)
    for end in (7, 9):
        source.ends[("a", 0)] = end
        until(lambda at=end: sink.covered() == {("a", 0): at, ("a", 1): 0}, f"up to {end}")  # type: ignore[misc]
    query.stop()
    assert ended(query) and query.exception() is None and source.closed
    assert [batch for batch, _, _ in sink.landed] == [0, 1]
    assert offsets(sink) == [(("a", 0), offset) for offset in range(5, 9)]
    assert all(noted == "[]" for _, _, noted in sink.landed) and not session.begun


def test_of_much_one_small_batch_goes_ahead_while_a_session_starts(
    source: Source, sink: Sink
) -> None:
    """The session is begun for the rest, and has the cores meanwhile."""
    session = Starting()
    source.ends = {("a", 0): 4_000, ("a", 1): 3_000}
    query = query_of(sink, session)
    until(lambda: session.looks >= 5, "some looks at the session")
    assert query.isActive and len(sink.landed) == 1
    session.started = True
    assert ended(query) and query.outgrown and len(sink.landed) == 1


def test_much_is_landed_in_small_batches_where_a_session_does_not_come(
    source: Source, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is begun for it, and to which the rest is left once it is there."""
    monkeypatch.setattr(driver_query, "YIELD_SECONDS", 0.05)
    session = Session()
    source.ends = {("a", 0): 4_000, ("a", 1): 3_000}
    query = query_of(sink, session)
    until(lambda: len(sink.landed) >= 3, "three batches")
    session.over = True
    assert ended(query) and query.outgrown and query.exception() is None
    assert session.begun
    seen = offsets(sink)
    assert len(seen) == len(set(seen)) < 6_995 - MANY * SMALL
    assert all(len(set(batch)) <= SMALL for batch in _by_batch(sink).values())
    assert all(noted is None for _, _, noted in sink.landed), "none comes to the ends"
    for key, reached in sink.covered().items():
        assert [at for place, at in seen if place == key] == list(range(STARTS[key], reached))


def test_some_batches_are_landed_at_once_and_start_no_session(source: Source, sink: Sink) -> None:
    """They take less long than its start."""
    session = Session()
    source.ends = {("a", 0): 5 + MANY * SMALL, ("a", 1): 0}
    query = query_of(sink, session)
    until(lambda: sink.covered() == source.ends, "all of them")
    query.stop()
    assert ended(query) and not session.begun and len(sink.landed) >= MANY


def _by_batch(sink: Sink) -> Mapping[int, list[object]]:
    return {
        batch: [(key, at) for key, bounds in ranges.items() for at in range(*bounds)]
        for batch, ranges, _ in sink.landed
    }


def test_a_session_that_is_there_is_left_alone_by_what_is_little(
    source: Source, sink: Sink
) -> None:
    session = Session()
    session.over = True
    source.ends[("a", 0)] = 5 + SMALL
    query = query_of(sink, session)
    until(lambda: sink.covered().get(("a", 0)) == 5 + SMALL, "a small batch")
    query.stop()
    assert ended(query) and not query.outgrown and not session.begun


def test_what_fails_ends_it_and_is_told(source: Source, sink: Sink) -> None:
    source.error = ReplicationError("no leader")
    query = query_of(sink, Session())
    assert ended(query) and query.exception() is source.error and not query.outgrown


def test_nothing_is_landed_behind_a_sink_that_was_closed(source: Source, sink: Sink) -> None:
    """Whatever the query was about to do: who plans the next one asks the table where to begin."""
    sink.stop_after_batch()
    sink.close()
    source.ends[("a", 0)] = 7
    query = query_of(sink, Session())
    assert ended(query) and not sink.landed
    assert "takes no more batches" in str(query.exception())


def test_a_batch_in_hand_is_seen(source: Source, sink: Sink) -> None:
    in_hand, goes_on = threading.Event(), threading.Event()
    sink.meanwhile = lambda: (in_hand.set(), goes_on.wait(30))
    query = query_of(sink, Session())
    assert source.asked.wait(30) and not query.status["isTriggerActive"]
    source.ends[("a", 0)] = 7
    assert in_hand.wait(30) and query.status["isTriggerActive"]
    goes_on.set()
    until(lambda: not query.status["isTriggerActive"], "the end of the batch")
    query.stop()
    assert ended(query)


@pytest.mark.parametrize(
    ("trigger", "took", "seconds"),
    [
        (0.25, 0.04, 0.25),
        (0.25, 0.2, 0.4),
        (0.25, 0.7, 0.5),
        (0.25, 60.0, 0.5),
        (2.0, 3.0, 2.0),
        (0.0, 3.0, 0.0),
    ],
)
def test_batches_that_take_long_leave_as_much_time_to_others(
    trigger: float, took: float, seconds: float
) -> None:
    """Up to two batches a second, and never more often than the file says."""
    assert apart(trigger, took) == seconds
