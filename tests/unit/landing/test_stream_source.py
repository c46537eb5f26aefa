"""The source of a landing query plans batches one behind the other, and hands all of each to its
tasks."""

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.errors import ReplicationError
from mirrorlake.landing import stream_source
from mirrorlake.landing.job import LandJob
from mirrorlake.landing.pace import FIRST_BYTES, LEAST_BYTES, UNKNOWN_RECORD_BYTES, Pace
from mirrorlake.landing.ranges import offsets_document, read_document
from mirrorlake.landing.stream_source import source_of
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.spark.jars import spark_minor
from tests.support.landing import StoppedClock, job_in

STARTS = {("a", 0): 5, ("a", 1): 0, ("b", 0): 7}
FINAL = {("a", 0): 70_005, ("a", 1): 3, ("b", 0): 7}


def stream_of(job: LandJob) -> Any:
    return source_of(job, "s", "offset bigint")(options={}).streamReader(None)  # type: ignore[arg-type]


def covered(stream: Any, start: dict[str, Any], end: dict[str, Any]) -> set[tuple[str, int, int]]:
    """Every offset that some task reads."""
    return {
        (*key, offset)
        for task in stream.partitions(start, end)
        for key, bounds in task.value.ranges.items()
        for offset in range(*bounds)
    }


@pytest.mark.parametrize("directory", [None, "/lake/records"])
def test_batches_are_all_there_is_and_nothing_twice(tmp_path: Path, directory: str | None) -> None:
    """Spark asks where the source begins only once the first batch has its end."""
    given = {"starts": STARTS, "final": FINAL, "final_noted": "[]", "directory": directory}
    stream = stream_of(job_in(tmp_path, **given, max_records=20_000))
    end = stream.latestOffset()
    start, seen, notes = stream.initialOffset(), set[tuple[str, int, int]](), []
    assert read_document(start) == (STARTS, None)
    while end != start:
        batch = covered(stream, start, end)
        assert batch and not batch & seen
        seen |= batch
        notes.append(end["noted"])
        start, end = end, stream.latestOffset()
    assert seen == {
        (*key, offset) for key, last in FINAL.items() for offset in range(STARTS[key], last)
    }
    assert len(notes) >= 4 and notes[-1] == "[]" and set(notes[:-1]) == {None}


def test_spark_says_where_a_batch_starts_and_how_much_it_may_hold(tmp_path: Path) -> None:
    """Since its version 4.2, which then hands the start itself back where there is nothing new."""
    given = {"starts": STARTS, "final": FINAL, "final_noted": "[]", "directory": "/lake/records"}
    stream = stream_of(job_in(tmp_path, **given, max_records=20_000))
    start = stream.initialOffset()
    few = stream.latestOffset(start, SimpleNamespace(max_rows=100))
    assert 0 < total(read_document(few)[0]) - total(STARTS) <= 100 + len(STARTS)
    again = stream.latestOffset(start, SimpleNamespace(max_rows=100))
    assert again == few, "nothing was read of it"
    end = offsets_document(FINAL, "[]")
    assert stream.latestOffset(end, SimpleNamespace(max_rows=100)) is end
    parameters = inspect.signature(stream.latestOffset).parameters
    assert list(parameters) == ["start", "limit"], "by these Spark knows"


@pytest.mark.parametrize("says_start", [False, True])
def test_nothing_is_planned_behind_a_batch_whose_parts_nobody_asked_for(
    tmp_path: Path, says_start: bool
) -> None:
    """Spark 4.1 and 4.2 ask some readers for none, and take their batch for done."""
    given = {"starts": STARTS, "final": FINAL, "final_noted": "[]", "max_records": 20_000}
    stream = stream_of(job_in(tmp_path, **given))
    start, ends = stream.initialOffset(), list[dict[str, Any]]()
    for _ in range(2):
        ends.append(stream.latestOffset(*[start] * says_start))
        stream.partitions(start, ends[-1])
        start = ends[-1]
    ends.append(stream.latestOffset(*[start] * says_start))
    assert ends[2] != ends[1] != ends[0]
    if says_start:
        assert stream.latestOffset(start) == ends[2], "it may ask once more before it begins"
    for _ in range(2):
        with pytest.raises(ReplicationError, match="never asked what its tasks are to read"):
            stream.latestOffset(*[ends[2]] * says_start)
    stream.partitions(start, ends[2])
    assert stream.latestOffset(*[ends[2]] * says_start) != ends[2]


@pytest.mark.skipif(spark_minor() < "4.2", reason="of Spark 4.2")
def test_the_limit_that_spark_hands_back_is_that_of_the_settings(tmp_path: Path) -> None:
    stream = stream_of(job_in(tmp_path, starts=STARTS, max_records=123))
    assert stream.getDefaultReadLimit().max_rows == 123


@pytest.mark.parametrize(("records", "tasks"), [(20_000, 1), (20_001, 2)])
def test_one_task_reads_a_small_batch(tmp_path: Path, records: int, tasks: int) -> None:
    """Each makes a file, and costs more than few records do."""
    final = {("a", number): (records + number) // 4 for number in range(4)}
    given = {"starts": dict.fromkeys(final, 0), "final": final, "final_noted": "[]"}
    sizes = {"max_records": 10**6, "small_batch_records": 20_000}
    stream = stream_of(job_in(tmp_path, **given, **sizes, tasks=2))
    start, end = stream.initialOffset(), stream.latestOffset()
    assert len(stream.partitions(start, end)) == tasks
    assert len(covered(stream, start, end)) == records


@pytest.mark.parametrize(("seconds", "grows"), [(1.0, True), (200.0, False)])
def test_where_the_session_commits_the_planner_learns_how_long_a_batch_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, grows: bool
) -> None:
    clock = StoppedClock()
    monkeypatch.setattr(stream_source, "time", clock)
    final = {key: start + 10_000_000 for key, start in STARTS.items()}
    job = job_in(tmp_path, starts=STARTS, final=final, max_records=4_000_000, trigger_seconds=0.1)
    stream = stream_of(job)
    sizes, before = list[int](), stream.initialOffset()
    for _ in range(4):
        end = stream.latestOffset()
        stream.partitions(before, end)
        sizes.append(total(read_document(end)[0]) - total(read_document(before)[0]))
        before = end
        clock.now += seconds
    assert sizes[0] <= FIRST_BYTES // UNKNOWN_RECORD_BYTES
    limit = job.pace().limit
    assert limit is not None
    if grows:
        assert sizes[2] > 100 * sizes[0] and sizes[3] <= 4_000_000 + len(STARTS)
    else:
        assert LEAST_BYTES <= limit < FIRST_BYTES and sizes[3] < sizes[0]
    job.keep_pace(Pace(1 << 20))
    assert stream_of(job)._pace() == Pace(1 << 20), "the next query goes by it"


def test_a_batch_within_its_trigger_was_fast_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that begins a batch a minute sleeps for most of it."""
    clock = StoppedClock()
    monkeypatch.setattr(stream_source, "time", clock)
    final = {key: start + 10_000_000 for key, start in STARTS.items()}
    job = job_in(tmp_path, starts=STARTS, final=final, max_records=10**6, trigger_seconds=60.0)
    stream = stream_of(job)
    stream.partitions(stream.initialOffset(), stream.latestOffset())
    clock.now += 60.0
    stream.latestOffset()
    assert (job.pace().limit or 0) > FIRST_BYTES


def test_files_are_paced_by_who_commits_them(tmp_path: Path) -> None:
    job = job_in(tmp_path, starts=STARTS, final=FINAL, directory="/lake/records")
    stream = stream_of(job)
    stream.partitions(stream.initialOffset(), stream.latestOffset())
    stream.latestOffset()
    assert job.pace() == Pace()


def total(ends: dict[TopicAndPartition, int]) -> int:
    return sum(ends.values())
