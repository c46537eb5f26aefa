"""A pool of tasks: what fails comes back with its class and its facts, beside what was done."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake import errors
from mirrorlake.errors import MirrorlakeError, TargetLost
from mirrorlake.spark.tasks import (
    NUMBER,
    OUTCOMES,
    SparkTask,
    TaskFailed,
    Work,
    by_number,
    deal,
    dealt,
    done_of,
    run_here,
)

Pair = tuple[int, int]
KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, MirrorlakeError)
]


def counted(bad: int, work: Work[int]) -> Iterator[Pair]:
    """A pair for each job, with how many rows it was given; fails at one."""
    for number, batches in work:
        if number == bad:
            raise TargetLost("gone", topic="t", partition=3, target_offset=7)
        rows = -1 if batches is None else sum(len(batch) for batch in batches)
        yield number, rows


def numbered(*keys: list[int]) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({NUMBER: pa.array(each, pa.int32())}) for each in keys]


def come_back(error: Exception) -> Exception:
    """An exception as the driver gets it from a task of Spark's."""

    def failing(work: Work[int]) -> Iterator[Pair]:
        for _ in work:
            raise error
        yield 0, 0

    worker = SparkTask(failing, [[1]])
    failure = done_of(pa.Table.from_batches(worker(numbered([0])), OUTCOMES)).failure
    assert failure is not None
    return failure


@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_of_ours_comes_back_with_its_facts(kind: type[MirrorlakeError]) -> None:
    facts = {"message": "it is so", "alias": "east", "first_offset": 2**40, "reason": None}
    error = kind.from_facts(facts)
    again = come_back(error)
    assert type(again) is kind and vars(again) == facts and str(again) == "it is so"


def test_a_number_of_numpys_is_a_number() -> None:
    error = TargetLost("lost", topic="t", partition=np.int32(1), target_offset=np.int64(5))  # type: ignore[arg-type]
    again = come_back(error)
    assert isinstance(again, TargetLost)
    assert again.topic_partition == ("t", 1) and again.target_offset == 5


def test_an_error_of_kafkas_comes_back_with_its_code_and_what_it_forbids() -> None:
    error = KafkaError(KafkaError._FENCED, "another one", fatal=True, txn_requires_abort=True)
    again = come_back(KafkaException(error)).args[0]
    assert (again.code(), again.str(), again.fatal(), again.retriable()) == (
        KafkaError._FENCED,
        "another one",
        True,
        False,
    )
    assert again.txn_requires_abort()


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file", "a"), OSError("a disk")])
def test_an_error_of_the_file_system_comes_back(error: OSError) -> None:
    again = come_back(error)
    assert type(again) is type(error) and str(again) == str(error)


def test_any_other_says_what_it_was(caplog: pytest.LogCaptureFixture) -> None:
    """And where, in the log."""

    class Odd(Exception):
        pass

    for error, text in ((ValueError("x"), "ValueError: x"), (Odd(), "Odd")):
        again = come_back(error)
        assert type(again) is TaskFailed and text in str(again)
    for error in (KafkaException(), KafkaException("no error of librdkafka's")):
        assert isinstance(come_back(error), KafkaException)
    assert "a task failed" in caplog.text


@pytest.mark.parametrize("jobs", [0, 1, 2, 5, 7])
@pytest.mark.parametrize("count", [1, 3, 10])
def test_jobs_are_dealt_to_neighbours(jobs: int, count: int) -> None:
    parts = deal(range(jobs), count)
    assert [job for part in parts for job in part] == list(range(jobs))
    assert len(parts) == min(jobs, count) and all(parts)


def test_what_was_done_beside_a_failure_is_kept() -> None:
    """Of the task that failed, too, as far as it came."""
    done = run_here(partial(counted, 4), dealt(range(6), 2))  # jobs 0 to 2, and 3 to 5
    assert done.results == [(0, -1), (1, -1), (2, -1), (3, -1)]
    with pytest.raises(TargetLost) as raised:
        done.checked()
    assert raised.value.target_offset == 7
    done = run_here(partial(counted, -1), dealt(range(3), 9))
    assert done.checked() == [(0, -1), (1, -1), (2, -1)]


def test_rows_are_dealt_to_their_jobs() -> None:
    batches = numbered([1, 1, 2], [], [2, 2], [3])
    jobs = {number: number for number in (1, 2, 3, 4)}
    done = run_here(partial(counted, -1), [by_number(batches, jobs)])
    assert done.checked() == [(1, 2), (2, 3), (3, 1)]


def lazy(work: Work[int]) -> Iterator[Pair]:
    """Looks at no more than the first rows of a job."""
    for number, batches in work:
        first = next(iter(batches or ()))
        yield number, len(first)


def test_rows_that_a_task_leaves_are_not_another_jobs() -> None:
    batches = numbered([1], [1, 1], [1, 2, 2])
    done = run_here(lazy, [by_number(batches, {1: 1, 2: 2})])
    assert done.checked() == [(1, 1), (2, 2)]


@pytest.mark.parametrize("over_rows", [True, False])
def test_a_worker_gives_rows_and_then_the_failure(over_rows: bool) -> None:
    """It takes all of its input, else Spark would not use it again."""
    jobs: Any = {n: n for n in (1, 2, 3)} if over_rows else [[1, 2, 3]]
    given = numbered([1], [2], [3]) if over_rows else numbered([0])
    taken: list[pa.RecordBatch] = []

    def giving() -> Iterable[pa.RecordBatch]:
        for batch in given:
            taken.append(batch)
            yield batch

    worker = SparkTask(partial(counted, 2), jobs, over_rows)
    done = done_of(pa.Table.from_batches(worker(giving()), OUTCOMES))
    assert [number for number, _ in done.results] == [1]
    assert isinstance(done.failure, TargetLost) and vars(done.failure)["partition"] == 3
    assert len(taken) == len(given)


def test_a_task_that_spark_left_out_is_not_one_that_had_nothing_to_give() -> None:
    """What the others have done is kept: some of it cannot be done again."""
    worker = SparkTask(partial(counted, -1), [[1, 2], [], [3]])

    def ran(*parts: int) -> pa.Table:
        given = [batch for part in parts for batch in worker(numbered([part]))]
        return pa.Table.from_batches(given, OUTCOMES)

    assert done_of(ran(0, 1, 2), 3).checked() == [(1, -1), (2, -1), (3, -1)]
    for parts, numbers in (((1, 2), [3]), ((0, 2), [1, 2, 3]), ((), [])):
        done = done_of(ran(*parts), 3)
        assert [number for number, _ in done.results] == numbers
        assert f"{len(parts)} of 3 tasks came to an end" in str(done.failure)
    failed = SparkTask(partial(counted, 3), [[1, 2], [], [3]])
    table = pa.concat_tables(
        [pa.Table.from_batches(failed(numbered([part])), OUTCOMES) for part in range(3)]
    )
    assert isinstance(done_of(table, 3).failure, TargetLost), "which came to its end, too"
