"""What this process commits of a landing query: each batch once, none behind a stop."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from mirrorlake.errors import Fenced, ReplicationError
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import place_of
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.landing import job as landing_job
from mirrorlake.landing import sinks
from mirrorlake.landing.checkpoints import application_of, end_queries, new_checkpoint
from mirrorlake.landing.job import BatchNumbers, LandJob
from mirrorlake.landing.land import LandingQuery
from mirrorlake.landing.pace import Pace
from mirrorlake.landing.sinks import PathSink
from mirrorlake.offsets.positions import Ranges, TopicAndPartition
from tests.support.lake_rows import no_session
from tests.support.landing import job_in, rows, write_offsets

A, B = ("a", 0), ("b", 1)


class OpenLog:
    """A `Log` in which every offset has a record; what happens `meanwhile` comes behind the first
    ones."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.meanwhile = meanwhile
        self.opened: list[bool] = []
        self.closed = self.pauses = 0
        self.prefetches: list[Collection[TopicAndPartition]] = []

    def __call__(self, _settings: object, keep: bool, small_answers: bool) -> "OpenLog":
        assert keep, "the next records are fetched ahead"
        self.opened.append(small_answers)
        return self

    def read(self, ranges: Ranges) -> Iterator[tuple[TopicAndPartition, pa.RecordBatch]]:
        for key, (first, end) in ranges.items():
            yield key, rows(key[1], list(range(first, end)))
            self.meanwhile()

    def keep_prefetched(self, keys: Collection[TopicAndPartition]) -> None:
        self.prefetches.append(keys)

    def pause(self) -> None:
        self.pauses += 1

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def lake(tmp_path: Path) -> PathLake:
    made = PathLake(no_session, place_of(tmp_path / "lake"), tmp_path / "checkpoints")
    made.create("records", {})
    return made


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> OpenLog:
    log = OpenLog()
    monkeypatch.setattr(sinks, "open_log", log)
    return log


def job_of(lake: PathLake, folder: Path, **given: object) -> LandJob:
    place = lake.root / "records"
    common = {"starts": {A: 5, B: 0}, "directory": place, "small_batch_records": 1_000}
    return job_in(folder, **{**common, **given})


def landed(lake: PathLake) -> list[tuple[str, int]]:
    found = lake.tables.opened("records").to_pyarrow_table(columns=["topic", "offset"])
    return sorted((row["topic"], row["offset"]) for row in found.to_pylist())


def test_a_batch_is_there_once_and_not_at_all_once_another_took_over(
    lake: PathLake, log: OpenLog, tmp_path: Path
) -> None:
    job = job_of(lake, tmp_path)
    for _ in range(2):
        PathSink(lake, job, "land x").land({A: (5, 8), B: (0, 1)}, None, 0)
    expected = [("a", 5), ("a", 6), ("a", 7), ("b", 0)]
    assert landed(lake) == expected
    sink = PathSink(lake, job, "land x")
    assert not sink.fenced()
    lake.fence("records", "land x", 2**62)
    with pytest.raises(Fenced):
        sink.land({A: (8, 9)}, None, 1)
    assert sink.fenced() and landed(lake) == expected


def test_batches_are_numbered_behind_those_of_the_host_before_whose_clock_was_ahead(
    lake: PathLake, log: OpenLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = StageFiles(lake)
    assert stage.newest_batch() == -1
    for times, end in (((9_000, 9_500), 7), ((4_000, 4_500), 9)):
        clock = iter(times)
        monkeypatch.setattr(
            landing_job, "time", SimpleNamespace(time_ns=lambda at=clock: next(at) * 1_000_000)
        )
        job = job_of(lake, tmp_path, numbers=BatchNumbers(stage.newest_batch()))
        sink = PathSink(lake, job, f"land {end}")
        sink.land({A: (end - 2, end - 1)}, None, 0)
        sink.land({A: (end - 1, end)}, None, 1)
    found = lake.tables.opened("records").to_pyarrow_table(columns=["offset", "batch_id"])
    numbers = {row["offset"]: row["batch_id"] for row in found.to_pylist()}
    assert numbers == {5: 9_000, 6: 9_500, 7: 9_501, 8: 9_502}
    # as commits tell it that are followed, and as one finds it that begins
    assert stage.newest_batch() == StageFiles(lake).newest_batch() == 9_502


def test_nothing_is_committed_of_what_turns_out_to_be_another_log(
    lake: PathLake, log: OpenLog, tmp_path: Path
) -> None:
    def check() -> None:
        assert log.opened, "it was read before"
        raise ReplicationError("the topic was made again")

    sink = PathSink(lake, job_of(lake, tmp_path), "again x")
    with pytest.raises(ReplicationError, match="made again"):
        sink.land({A: (5, 8)}, None, 1, check=check)
    assert landed(lake) == []
    sink.land({A: (5, 8)}, None, 1)
    assert landed(lake) == [("a", 5), ("a", 6), ("a", 7)]


def test_batches_follow_the_offsets_of_a_query_until_it_is_to_stop(
    lake: PathLake, log: OpenLog, tmp_path: Path
) -> None:
    sink, checkpoint = PathSink(lake, job_of(lake, tmp_path), "land x"), tmp_path / "x"
    take: Any = sink.start(started(), checkpoint)  # type: ignore[arg-type]
    for batch, ends in enumerate([{A: 7, B: 0}, {A: 7, B: 2}, {A: 9, B: 2}]):
        write_offsets(checkpoint, batch, ends)
    frame = SimpleNamespace(sparkSession=None)
    query = LandingQuery(sink, SimpleNamespace(isActive=True), {A: 7, B: 2}, name="x")  # type: ignore[arg-type]
    assert sink.covered() == {} and not query.began and query.active
    take(frame, 0)
    assert sink.covered() == {A: 7, B: 0} and query.began and query.active
    take(frame, 1)
    assert sink.covered() == {A: 7, B: 2} and query.began and not query.active
    assert landed(lake) == [("a", 5), ("a", 6), ("b", 0), ("b", 1)]
    assert log.opened == [True], "one client reads on"
    sink.stop_after_batch()
    with pytest.raises(ReplicationError, match="takes no more batches: it is being stopped"):
        take(frame, 2)
    sink.close()
    assert len(landed(lake)) == 4 and log.closed == 1


def test_what_was_not_committed_is_not_covered(
    lake: PathLake, log: OpenLog, tmp_path: Path
) -> None:
    sink, checkpoint = PathSink(lake, job_of(lake, tmp_path), "land x"), tmp_path / "x"
    take: Any = sink.start(started(), checkpoint)  # type: ignore[arg-type]
    lake.fence("records", "land x", 2**62)
    write_offsets(checkpoint, 0, {A: 7, B: 0})
    with pytest.raises(Fenced):
        take(SimpleNamespace(sparkSession=None), 0)
    assert sink.covered() == {}


def test_a_commit_whose_answer_was_lost_comes_no_more_behind_the_next_query(
    lake: PathLake, log: OpenLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has would else be staged twice, by it and by that query, and no flow goes on behind
    that."""
    checkpoint = new_checkpoint(lake, "east")
    sink = PathSink(lake, job_of(lake, tmp_path), application_of(checkpoint))
    sink.land({A: (5, 6)}, None, 0)
    assert sink.compared
    on_its_way: list[Any] = []

    def lost(*commit: Any) -> None:
        on_its_way.append(commit)
        raise OSError("no answer")

    with monkeypatch.context() as away:
        away.setattr(lake.tables, "add_files", lost)
        with pytest.raises(OSError, match="no answer"):
            sink.land({A: (6, 8)}, None, 1)
    assert not sink.compared, "so its name is not forgotten"
    end_queries(lake, "east")
    with pytest.raises(Fenced):
        lake.tables.add_files(*on_its_way[0])
    assert landed(lake) == [("a", 5)]


def test_nothing_is_committed_of_a_batch_that_a_stop_did_not_wait_for(
    lake: PathLake, log: OpenLog, tmp_path: Path
) -> None:
    sink = PathSink(lake, job_of(lake, tmp_path), "land x")
    log.meanwhile = sink.close
    with pytest.raises(ReplicationError, match="was stopped within a batch"):
        sink.land({A: (5, 8), B: (0, 1)}, None, 0)
    assert landed(lake) == [] and log.closed == 1


def test_a_client_asks_for_answers_of_the_size_that_the_pace_says(
    lake: PathLake, log: OpenLog, tmp_path: Path
) -> None:
    job = job_of(lake, tmp_path)
    job.keep_pace(Pace(60 << 20, {"a": 30.0 * (1 << 20)}))
    sink = PathSink(lake, job, "land x")
    sink.land({A: (5, 7)}, None, 0)
    assert [set(keys) for keys in log.prefetches] == [{A}], "a backlog over a slow link"
    assert not log.pauses, "what comes ahead is read next"
    sink._keep(Pace(1 << 30))
    assert log.closed == 1 and job.pace() == Pace(1 << 30)
    sink.land({A: (7, 8)}, None, 1)
    assert log.opened == [True, False] and log.pauses == 1


def test_a_source_that_never_had_a_backlog_is_not_fetched_from_between_batches(
    lake: PathLake, log: OpenLog, tmp_path: Path
) -> None:
    """How fast its link is is not known, and its answers are small."""
    sink = PathSink(lake, job_of(lake, tmp_path), "land x")
    for batch, first in enumerate((5, 6, 7)):
        sink.land({A: (first, first + 1)}, None, batch)
    assert log.opened == [True] and log.pauses == 3


def started() -> Any:
    """A writer of a stream, of which what takes a batch is all that is wanted."""
    return SimpleNamespace(foreachBatch=lambda take: SimpleNamespace(start=lambda: take))
