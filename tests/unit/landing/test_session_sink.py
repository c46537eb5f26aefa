"""What a session commits of a landing query, and how it is known that its tasks have read it."""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.lake.path_lake import PathLake
from mirrorlake.landing import session_sink
from mirrorlake.landing.checkpoints import (
    application_of,
    end_queries,
    forget_query,
    is_fenced,
    is_fenced_by_delta,
    left_queries,
    new_checkpoint,
)
from mirrorlake.landing.gaps import LeftQuery
from mirrorlake.landing.land import LandingQuery
from mirrorlake.landing.ranges import offsets_document
from mirrorlake.landing.receipts import receipt, reported_batch, unread
from mirrorlake.landing.session_sink import SessionSink, stream_of
from mirrorlake.offsets.positions import TopicAndPartition
from tests.support.landing import job_in, lake_in, write_offsets

A, B = ("a", 0), ("b", 1)


#: What tasks say that they have read of A.
Read = list[tuple[int, int]]


class OfSpark(SimpleNamespace):
    """A query of Spark's that goes on, of which it reports some batches: ends, and what tasks have
    read of A."""

    isActive = True
    status: dict[str, bool] = {"isTriggerActive": False}

    def report(self, *batches: tuple[int, Read | None], first: int | None = None) -> None:
        self.recentProgress, start = list[SimpleNamespace](), first
        for end, read in batches:
            given = [receipt({A: bounds}) for bounds in read or ()]
            told = {
                "sources": [{"startOffset": of(start), "endOffset": json.dumps(of(end))}],
                "observedMetrics": {} if read is None else {"receipts": {"receipts": given}},
            }
            self.recentProgress.append(SimpleNamespace(json=json.dumps(told)))
            start = end
        self.lastProgress = self.recentProgress[-1]


def of(end: int | None) -> dict[str, Any] | None:
    return None if end is None else offsets_document({A: end, B: 0})


WHOLE: tuple[int, Read] = (8, [(5, 8)])


@pytest.mark.parametrize(
    ("batches", "covered", "named"),
    [
        ([WHOLE, (8, None)], 8, None),
        ([WHOLE, (10, [(8, 9), (9, 10)])], 10, None),
        ([WHOLE, (10, [(9, 10), (8, 9), (9, 10)])], 10, None),  # a stage that Spark ran twice
        ([(8, None)], 5, "have read 0 of 3 offsets, and not a-0 5 to 7;"),
        ([(8, []), (10, [(8, 10)])], 5, "have read 0 of 3 offsets, and not a-0 5 to 7;"),
        ([WHOLE, (10, [(8, 9)])], 8, "have read 1 of 2 offsets, and not a-0 9 to 9;"),
        ([WHOLE, (10, [(9, 10)])], 8, "have read 1 of 2 offsets, and not a-0 8 to 8;"),
        ([WHOLE, (11, [(8, 9), (8, 9), (9, 10)])], 8, "read 2 of 3 offsets, and not a-0 10 to 10;"),
    ],
)
def test_a_batch_that_spark_reports_counts_once_its_tasks_have_read_it(
    tmp_path: Path, batches: list[tuple[int, Read | None]], covered: int, named: str | None
) -> None:
    """Spark 4.1 and 4.2 plan no part of some readers, and report the batch as done."""
    query: Any = OfSpark(lastProgress=None)
    sink = started_sink(lake_in(tmp_path), tmp_path, query)
    landing = LandingQuery(sink, query, {A: 10, B: 0}, name="q")
    assert landing.covered() == {} and landing.active
    query.report(*batches)
    assert landing.began is (named is None), (
        "that a batch was not read is no news of a query that works"
    )
    assert landing.covered() == {A: covered, B: 0}
    assert landing.active is (named is None and covered < 10)
    if named is None:
        assert landing.exception() is None
        return
    assert named in str(landing.exception())
    query.report((12, [(10, 12)]), first=10)
    assert landing.covered() == {A: covered, B: 0} and not landing.active
    query.isActive = False
    query.exception = lambda: ValueError("it was stopped")
    assert named in str(landing.exception()), "nor is it forgotten when it is stopped"


def test_what_the_last_batch_has_not_read_is_why_a_query_has_failed(tmp_path: Path) -> None:
    """Its planner sees no more than that nobody asked for parts."""
    query: Any = OfSpark(exception=lambda: ValueError("never asked"))
    query.report((8, None))
    query.isActive = False
    sink = started_sink(lake_in(tmp_path), tmp_path, query)
    landing = LandingQuery(sink, query, name="q")
    assert "have read 0 of 3 offsets" in str(landing.exception())


@pytest.mark.parametrize(
    ("final", "reported", "ended"),
    [({A: 8, B: 0}, WHOLE, True), ({A: 10, B: 0}, WHOLE, False), (None, WHOLE, False)],
)
def test_a_query_has_ended_where_it_was_to_end(
    tmp_path: Path,
    final: dict[TopicAndPartition, int] | None,
    reported: tuple[int, Read],
    ended: bool,
) -> None:
    query: Any = OfSpark(exception=lambda: None)
    query.report(reported)
    query.isActive = False  # it was stopped, whoever did
    sink = started_sink(lake_in(tmp_path), tmp_path, query)
    landing = LandingQuery(sink, query, final, name="q")
    assert not landing.active and landing.exception() is None
    assert landing.ended is ended
    assert LandingQuery(sink_of(tmp_path), name="q").ended, "there was nothing to read"


def test_a_query_without_a_name_is_none(tmp_path: Path) -> None:
    """To forget one would be to forget those of all processes."""
    with pytest.raises(TypeError, match="name"):
        LandingQuery(sink_of(tmp_path))  # type: ignore[call-arg]


def test_batches_that_spark_does_not_report_any_more_are_compared_by_what_is_staged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It remembers some. Those behind are looked at, and those before when the query ends."""
    lake = lake_in(tmp_path)
    query = OfSpark()
    sink = started_sink(lake, tmp_path, query)
    query.report(WHOLE)
    write_offsets(tmp_path / "checkpoints/land/east/q", 0, {A: 8, B: 0})
    assert sink.covered() == {A: 8, B: 0} and sink.compared
    query.report((12, [(10, 12)]), first=10)
    write_offsets(tmp_path / "checkpoints/land/east/q", 4, {A: 12, B: 0})
    assert sink.covered() == {A: 12, B: 0} and sink.failure is None
    assert "does not report some batches any more" in caplog.text
    assert not sink.compared
    (left,) = left_queries(lake, "east", "q")
    assert left.ends == {A: 8, B: 0}, "what those behind have read is not known"
    query.report((15, [(13, 15)]), (17, [(16, 17)]), first=13)
    assert sink.covered() == {A: 15, B: 0} and sink.failure


def test_what_tasks_have_not_said_is_left_for_who_ends_the_query(tmp_path: Path) -> None:
    """Or for the next process, where this one dies; on whichever host that is."""
    lake, checkpoint = lake_in(tmp_path), tmp_path / "checkpoints/land/east/q"
    query = OfSpark()
    sink = started_sink(lake, tmp_path, query)
    read = LeftQuery("q", {A: 5, B: 0}, {A: 2})
    assert left_queries(lake, "east", "q") == [read] and not sink.compared, (
        "nobody sees what it plans"
    )
    write_offsets(checkpoint, 0, {A: 8, B: 0})
    assert not sink.compared, "it is planned, and may be committed"
    assert left_queries(lake, "east", "q") == [read]
    query.report(WHOLE)
    assert sink.covered() == {A: 8, B: 0} and sink.compared
    read = LeftQuery("q", {A: 8, B: 0}, {A: 2})
    assert left_queries(lake, "east", "q") == [read]
    write_offsets(checkpoint, 1, {A: 10, B: 4})
    query.report((10, [(8, 9)]), first=8)
    assert sink.covered() == {A: 8, B: 0} and not sink.compared
    shutil.rmtree(checkpoint)
    assert left_queries(lake, "east", "q") == [read]


def test_a_query_begins_only_where_its_mark_says_from_where_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nothing would look for a hole that it leaves. What it notes later may fail: then more is
    looked at."""
    lake = lake_in(tmp_path)
    query = OfSpark()
    begun = started_sink(lake, tmp_path, query)

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(session_sink, "keep_read", full)
    with pytest.raises(OSError, match="no space left"):
        sink_of(tmp_path, lake).start(None, tmp_path / "checkpoints/land/east/r")
    query.report(WHOLE)
    assert begun.covered() == {A: 8, B: 0}
    assert left_queries(lake, "east", "q") == [LeftQuery("q", {A: 5, B: 0}, {A: 2})]


def test_who_ends_queries_fences_each_once_and_keeps_what_they_have_read(tmp_path: Path) -> None:
    lake, checkpoint = lake_in(tmp_path), tmp_path / "checkpoints/land/east/q"
    started_sink(lake, tmp_path)
    other = new_checkpoint(lake, "east")  # of a query whose batches the driver commits
    other.mkdir()
    (checkpoint / "metadata").write_text('{"id": "spark"}')
    assert not is_fenced_by_delta(lake, "spark", checkpoint)
    assert left_queries(lake, "east") == [], "it may be another process's, and go on"
    end_queries(lake, "east")
    assert is_fenced_by_delta(lake, "spark", checkpoint), "who runs it sees it at once"
    assert is_fenced(lake, application_of(other)) and not other.exists()
    (left,) = left_queries(lake, "east")
    assert left == LeftQuery("q", {A: 5, B: 0}, {A: 2}), "who fences it may die, too"
    version = lake.version_of("records")
    end_queries(lake, "east")
    assert lake.version_of("records") == version, "while the source is away it is done often"
    forget_query(lake, "east", "q")
    assert left_queries(lake, "east") == [] and not checkpoint.exists()


@pytest.mark.parametrize("killed", [False, True])
def test_what_a_fenced_query_reports_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """Delta skips it without a word. Who fences may be killed right behind, and may have forgotten
    the query by then."""
    lake, query = lake_in(tmp_path), OfSpark()
    sink, checkpoint = started_sink(lake, tmp_path, query), tmp_path / "checkpoints/land/east/q"
    (checkpoint / "metadata").write_text('{"id": "id"}')
    query.report(WHOLE)
    assert sink.covered() == {A: 8, B: 0} and not sink.fenced()
    fence = lake.fence

    def fenced(table: str, application: str, version: int) -> None:
        fence(table, application, version)
        if killed and application == "id":
            raise KeyboardInterrupt

    monkeypatch.setattr(lake, "fence", fenced)
    with pytest.raises(KeyboardInterrupt) if killed else nullcontext():
        end_queries(lake, "east")
    query.report((10, [(8, 10)]), first=8)
    assert sink.covered() == {A: 8, B: 0} and sink.fenced()
    monkeypatch.setattr(lake, "fence", fence)
    end_queries(lake, "east")
    assert [left.name for left in left_queries(lake, "east")] == ["q"]
    forget_query(lake, "east", "q")
    query.report((10, [(8, 10)]), first=8)
    assert sink.covered() == {A: 8, B: 0} and sink.fenced()


def test_who_ends_a_query_goes_on_where_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it is not fenced, and lands."""
    lake, query = lake_in(tmp_path), OfSpark()
    sink, checkpoint = started_sink(lake, tmp_path, query), tmp_path / "checkpoints/land/east/q"
    (checkpoint / "metadata").write_text('{"id": "id"}')
    query.report(WHOLE)
    assert sink.covered() == {A: 8, B: 0}
    fence = lake.fence

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(lake, "fence", killed)
    with pytest.raises(KeyboardInterrupt):
        end_queries(lake, "east")
    query.report((10, [(8, 10)]), first=8)
    assert sink.covered() == {A: 10, B: 0} and not sink.fenced()
    monkeypatch.setattr(lake, "fence", fence)
    end_queries(lake, "east")
    assert is_fenced(lake, "id") and sink.fenced()


def sink_of(folder: Path, lake: PathLake | None = None) -> Any:
    job = job_in(folder, starts={A: 5, B: 0}, generations={A: 2})
    return SessionSink(lake, job)  # type: ignore[arg-type]


def started_sink(lake: PathLake, folder: Path, query: object = None) -> Any:
    """One whose query has begun, with the checkpoint `q`."""
    sink, checkpoint = sink_of(folder, lake), folder / "checkpoints/land/east/q"
    checkpoint.mkdir(parents=True)
    sink._keep_read(checkpoint)
    sink._query, sink._named = query, ("id", checkpoint)
    return sink


@pytest.mark.parametrize(
    "observed",
    [
        {"receipts": [receipt({A: (5, 8)})]},
        # as Spark 4.2 gives a row through Connect
        {"values": [[receipt({A: (5, 8)})]], "schema": {"type": "struct", "fields": []}},
    ],
    ids=["own", "connect"],
)
def test_what_tasks_have_read_is_told_in_either_form_of_a_row(observed: dict[str, Any]) -> None:
    report = {"sources": [{"endOffset": of(8)}], "observedMetrics": {"receipts": observed}}
    batch = reported_batch(json.dumps(report), {A: 5, B: 0})
    assert batch.planned == {A: (5, 8)}
    assert not unread(batch.planned, batch.receipts)


def test_two_lakes_of_one_session_have_each_a_source_of_its_own(tmp_path: Path) -> None:
    """Of one name the last one that is registered would be read for both."""

    class Registered(Exception):
        """It comes no further: what reads the source takes a real session."""

    def register(source: Any) -> None:
        raise Registered(source.name())

    session: Any = SimpleNamespace(dataSource=SimpleNamespace(register=register))
    names = set()
    for lake_id in ("one", "other"):
        with pytest.raises(Registered) as told:
            stream_of(session, job_in(tmp_path), lake_id)
        names.add(str(told.value))
    assert len(names) == 2
