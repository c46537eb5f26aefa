"""Tasks in Spark's own workers: what they raise comes back as it was, and what they were killed by
is Spark's failure."""

import os
import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from mirrorlake.errors import Fenced, TargetLost
from mirrorlake.spark.failures import SPARK_FAILURES
from mirrorlake.spark.tasks import Task, Work, run_by_spark, run_rows_by_spark

Pair = tuple[int, int]


def numbered(error: Exception | None = None, killed: bool = False) -> Task[int, Pair]:
    """A pair for each job; fails at job 5, or is killed at the end. Made here, so that it goes to
    workers as it is: they have no tests."""

    def run(work: Work[int]) -> Iterator[Pair]:
        for number, batches in work:
            if number == 5 and error is not None:
                raise error
            rows = -1 if batches is None else sum(len(batch) for batch in batches)
            yield number, rows
        if killed:
            os.kill(os.getpid(), signal.SIGKILL)

    return run


LOST = TargetLost("t-3 is gone", topic="t", partition=3, first_offset=2**40, target_offset=7)


def test_a_failure_keeps_its_class_and_its_facts_and_the_rows_beside_it(
    spark: SparkSession,
) -> None:
    """Two tasks with jobs 0 to 3, and 4 to 7."""
    done = run_by_spark(spark, numbered(LOST), range(8), 2)
    assert sorted(number for number, _ in done.results) == [0, 1, 2, 3, 4]
    assert type(done.failure) is TargetLost and vars(done.failure) == vars(LOST)


def test_the_same_over_rows(spark: SparkSession) -> None:
    frame = spark.range(0, 80, 1, 1).selectExpr("CAST(id DIV 10 AS INT) AS number", "id")
    frame = frame.repartition(3, "number").sortWithinPartitions("number", "id")
    jobs = {number: number for number in range(8)}
    done = run_rows_by_spark(frame, numbered(), jobs)
    assert sorted(done.checked()) == [(number, 10) for number in range(8)]
    failing = numbered(Fenced("another one", topic="t"))
    done = run_rows_by_spark(frame, failing, jobs)
    with pytest.raises(Fenced, match="another one") as raised:
        done.checked()
    assert raised.value.topic == "t" and done.results


def test_a_worker_that_is_killed_is_sparks_failure(spark: SparkSession) -> None:
    with pytest.raises(SPARK_FAILURES, match="(?i)crashed|exited"):
        run_by_spark(spark, numbered(killed=True), range(2), 2)
