"""One pool of tasks: jobs and a task in, results and failures out.

A task is the same code in threads of this process, in Spark's workers, or there over rows that
Spark hands over. Results come from Spark pickled, one a row, and so does a task's exception: Spark
would make a text of it and drop the results of all tasks. So Spark fails, and retries, only for
what it lost itself, such as a killed worker; the caller retries the rest. A task reports its end:
one that Spark left out would look like one without results.
"""

import copyreg
import logging
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from traceback import format_exception
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaException

from mirrorlake.errors import MirrorlakeError, ReplicationError, text_of

if TYPE_CHECKING:  # tasks in this process need no session
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

Job = TypeVar("Job")
Result = TypeVar("Result")
#: Jobs, each with the rows that Spark hands over for it; None if the task reads by itself.
Work = Iterable[tuple[Job, Iterator[pa.RecordBatch] | None]]
#: A task does jobs one after the other, and ends with the first one that fails.
Task = Callable[[Work[Job]], Iterator[Result]]
#: What tasks give: a pickled result or exception, or `None` at the end of one that reads itself.
OUTCOMES = pa.schema([("outcome", pa.binary())])
#: The column in rows from Spark with the number of their job, or of their part of the work.
NUMBER = "number"


class TaskFailed(Exception):
    """A task's exception that is not ours, Kafka's or the file system's: class, text and trace."""

    def __init__(self, text: str, trace: str = "") -> None:
        super().__init__(text, trace)
        self.trace = trace

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Done(Generic[Result]):
    """Some jobs' outcome: what tasks gave, also those that failed later, and the first failure."""

    results: Sequence[Result] = ()
    failure: Exception | None = None

    def checked(self) -> Sequence[Result]:
        """The results of all jobs. Raises the failure, if any."""
        if self.failure is not None:
            raise self.failure
        return self.results


def run_here(task: Task[Job, Result], parts: Sequence[Work[Job]]) -> Done[Result]:
    """Run a task here over parts of some work (`dealt`, `by_number`), each in its own thread."""
    with ThreadPoolExecutor(max(1, len(parts)), "task") as pool:
        ran = (pool.map if len(parts) > 1 else map)(lambda part: list(_ran(task, part)), parts)
        return _done(chain.from_iterable(ran))


def run_by_spark(
    spark: "SparkSession", task: Task[Job, Result], jobs: Sequence[Job], tasks: int
) -> Done[Result]:
    """Run pickled jobs in Spark tasks; neighbours share one. Raises SPARK_FAILURES."""
    parts = deal(jobs, tasks)
    if not parts:
        return Done()
    return _collected(numbers(spark, len(parts)), SparkTask(task, parts), len(parts))


def run_rows_by_spark(
    frame: "DataFrame", task: Task[Job, Result], jobs: Mapping[int, Job]
) -> Done[Result]:
    """Run jobs over the rows of a frame, whose column NUMBER names the job: all rows of a job are
    consecutive in one partition. A job without rows does not run. Raises SPARK_FAILURES."""
    return _collected(frame, SparkTask(task, jobs, over_rows=True))


def numbers(spark: "SparkSession", parts: int) -> "DataFrame":
    """The NUMBER of each part of some work, each in a task of its own."""
    return spark.range(0, parts, 1, max(1, parts)).toDF(NUMBER)


def dealt(jobs: Sequence[Job], count: int) -> list[Work[Job]]:
    """Jobs as parts of work whose tasks read by themselves, see `deal`."""
    return [[(job, None) for job in part] for part in deal(jobs, count)]


def deal(jobs: Sequence[Job], count: int) -> list[Sequence[Job]]:
    """Deal jobs out in up to `count` parts, none of them empty, neighbours to one part."""
    count = max(1, min(count, len(jobs)))
    bounds = [len(jobs) * number // count for number in range(count + 1)]
    return [jobs[a:b] for a, b in zip(bounds, bounds[1:], strict=False) if a < b]


@dataclass(frozen=True)
class SparkTask(Generic[Job, Result]):
    """A task as Spark calls it (mapInArrow): over numbers of parts, at the end of which it reports
    that it is done, or `over_rows` of jobs. Gives rows of OUTCOMES."""

    task: Task[Job, Result]
    jobs: Mapping[int, Any] | Sequence[Any]
    over_rows: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        taken = iter(batches)
        for outcome in _ran(self.task, self._work(taken)):
            yield _row(outcome)
        deque(taken, maxlen=0)  # Spark does not reuse a worker that leaves some of its input
        if not self.over_rows:
            yield _row(None)

    def _work(self, batches: Iterator[pa.RecordBatch]) -> Work[Job]:
        work = by_number(batches, self.jobs)
        return work if self.over_rows else ((job, None) for part, _ in work for job in part)


def done_of(rows: pa.Table, tasks: int = 0) -> Done[Any]:
    """The outcome in rows of `SparkTask`, given the number of tasks that read by themselves."""
    given = [pickle.loads(row) for row in rows["outcome"].to_pylist()]
    outcomes = [outcome for outcome in given if outcome is not None]
    ended = len(given) - len(outcomes)
    if ended < tasks:
        outcomes.append(
            ReplicationError(
                f"Spark reports a job as done of which {ended} of {tasks} tasks came to an end; it "
                "is done again: compare Spark's version with docs/compatibility.md"
            )
        )
    for outcome in outcomes:
        if isinstance(outcome, TaskFailed):
            logger.error("a task failed:\n%s", outcome.trace)
    return _done(outcomes)


def _kafka_exception(*args: object) -> KafkaException:
    return KafkaException(*args)


# Its class names a module that cannot be imported.
copyreg.pickle(KafkaException, lambda error: (_kafka_exception, error.args))


def _row(outcome: object) -> pa.RecordBatch:
    """A row of OUTCOMES. An exception of another library becomes TaskFailed: a driver handles it no
    other way, and may not be able to unpickle it."""
    if isinstance(outcome, Exception) and not _is_handled(outcome):
        outcome = TaskFailed(
            f"{type(outcome).__qualname__}: {text_of(outcome)}", "".join(format_exception(outcome))
        )
    return pa.RecordBatch.from_pylist([{"outcome": pickle.dumps(outcome)}], OUTCOMES)


def _is_handled(error: Exception) -> bool:
    """Whether drivers handle an exception by its class."""
    of_python = isinstance(error, OSError) and type(error).__module__ == "builtins"
    return of_python or isinstance(error, (MirrorlakeError, KafkaException))


def _ran(task: Task[Job, Result], work: Work[Job]) -> Iterator[Result | Exception]:
    """The results of a task, and at last the exception that it raised, if any."""
    try:
        yield from task(work)
    except Exception as error:  # noqa: BLE001 - the caller of the pool raises it
        yield error


def _done(outcomes: Iterable[Result | Exception]) -> Done[Result]:
    results, failures = list[Result](), list[Exception]()
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            failures.append(outcome)
        else:
            results.append(outcome)
    for other in failures[1:]:
        logger.warning("one more task failed: %s", text_of(other))
    return Done(results, failures[0] if failures else None)


def _collected(frame: "DataFrame", worker: SparkTask[Job, Any], tasks: int = 0) -> Done[Any]:
    from pyspark.sql.pandas.types import from_arrow_schema

    return done_of(frame.mapInArrow(worker, from_arrow_schema(OUTCOMES)).toArrow(), tasks)


def by_number(
    batches: Iterable[pa.RecordBatch], jobs: Mapping[int, Job] | Sequence[Job]
) -> Iterator[tuple[Job, Iterator[pa.RecordBatch]]]:
    """Jobs with their rows, by column NUMBER. Rows that a job's task leaves are skipped."""
    for number, pieces in groupby(_cut(batches), key=itemgetter(0)):
        yield jobs[number], (rows for _, rows in pieces)


def _cut(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Cut rows where the number of their job changes."""
    for batch in batches:
        numbers = batch.column(NUMBER).to_numpy(zero_copy_only=False)
        ends = [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, end in zip([0, *ends], ends, strict=False):
            if start < end:
                yield int(numbers[start]), batch.slice(start, end - start)
