"""One pool of tasks: jobs and a task in, Arrow rows and failures out.

A task is the same code wherever it runs: in threads of this process, in Spark's workers, or there
over rows that Spark hands over. Spark would make a text of a task's exception and drop the rows of
all tasks, so an exception comes back as a row, with its class and facts. So a failure of Spark's is
only what Spark lost itself, such as a worker that was killed, and Spark retries only that; the
caller retries what a task raised. A task that came to its end reports it: one that Spark left out
would otherwise look like one that had nothing to give.
"""

import importlib
import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from numbers import Integral
from operator import itemgetter
from traceback import format_exception
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import MirrorlakeError, ReplicationError, text_of

if TYPE_CHECKING:  # tasks in this process need no session
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

Job = TypeVar("Job")
#: Jobs, each with the rows that Spark hands over for it; None if the task reads by itself.
Work = Iterable[tuple[Job, Iterator[pa.RecordBatch] | None]]
#: A task does jobs one after the other, and ends with the first one that fails.
Task = Callable[[Work[Job]], Iterator[pa.RecordBatch]]
#: The column of a failure, or of the end of a task that reads by itself; null in all other rows.
FAILURE = "failure"
_ENDED = ""
#: The column in rows from Spark with the number of their job, or of their part of the work.
NUMBER = "number"


class TaskFailed(Exception):
    """An exception of a task that is none of ours, of Kafka's or of the file system: its class and
    text."""


@dataclass(frozen=True)
class Done:
    """The outcome of some jobs: the rows that tasks gave, also those of tasks that failed later,
    and the first failure."""

    rows: pa.Table
    failure: Exception | None = None

    def checked(self) -> pa.Table:
        """The rows of all jobs. Raises the failure, if any."""
        if self.failure is not None:
            raise self.failure
        return self.rows


def run_here(task: Task[Job], parts: Sequence[Work[Job]], schema: pa.Schema) -> Done:
    """Run a task in this process over each part of some work (`dealt`, `by_number`), several parts
    each in a thread of its own. Rows are of `schema`."""
    with ThreadPoolExecutor(max(1, len(parts)), "task") as pool:
        ran = list((pool.map if len(parts) > 1 else map)(partial(_ran, task), parts))
    batches = [batch for given, _ in ran for batch in given]
    failures = [error for _, error in ran if error is not None]
    return Done(pa.Table.from_batches(batches, schema), _first_of(failures))


def run_by_spark(
    spark: "SparkSession", task: Task[Job], jobs: Sequence[Job], schema: pa.Schema, tasks: int
) -> Done:
    """Run jobs in Spark tasks; neighbours share a task. `task` and jobs are pickled. Raises
    SPARK_FAILURES for what Spark lost."""
    parts = deal(jobs, tasks)
    if not parts:
        return Done(schema.empty_table())
    return _collected(numbers(spark, len(parts)), SparkTask(task, parts, schema), len(parts))


def run_rows_by_spark(
    frame: "DataFrame", task: Task[Job], jobs: Mapping[int, Job], schema: pa.Schema
) -> Done:
    """Run jobs over the rows of a frame, whose column NUMBER names the job: all rows of a job are
    consecutive in one partition. A job without rows does not run. Raises SPARK_FAILURES."""
    return _collected(frame, SparkTask(task, jobs, schema, over_rows=True))


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
class SparkTask(Generic[Job]):
    """A task as Spark calls it (mapInArrow): over numbers of parts, at the end of which it reports
    that it is done, or `over_rows` of jobs. Gives rows of `schema` and FAILURE."""

    task: Task[Job]
    jobs: Mapping[int, Any] | Sequence[Any]
    schema: pa.Schema
    over_rows: bool = False

    @property
    def gives(self) -> pa.Schema:
        """The schema of the rows that it gives."""
        return self.schema.append(pa.field(FAILURE, pa.string()))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        taken = iter(batches)
        try:
            for rows in self.task(self._work(taken)):
                yield rows.append_column(FAILURE, pa.nulls(len(rows), pa.string()))
            if not self.over_rows:
                yield pa.RecordBatch.from_pylist([{FAILURE: _ENDED}], self.gives)
        except Exception as error:  # noqa: BLE001 - the driver raises it again
            yield pa.RecordBatch.from_pylist([{FAILURE: to_text(error)}], self.gives)
            deque(taken, maxlen=0)  # Spark does not reuse a worker that leaves some of its input

    def _work(self, batches: Iterator[pa.RecordBatch]) -> Work[Job]:
        work = by_number(batches, self.jobs)
        return work if self.over_rows else ((job, None) for part, _ in work for job in part)


def done_of(table: pa.Table, tasks: int = 0) -> Done:
    """The outcome in rows of `SparkTask`, given the number of tasks that read by themselves."""
    ends = table[FAILURE].drop_null().to_pylist()
    failures = [from_text(text) for text in ends if text != _ENDED]
    if len(ends) < tasks:
        failures.append(
            ReplicationError(
                f"Spark reports a job as done of which {len(ends)} of {tasks} tasks came to an "
                "end; it is done again: compare Spark's version with docs/compatibility.md"
            )
        )
    rows = table.filter(table[FAILURE].is_null()).drop_columns([FAILURE])
    return Done(rows, _first_of(failures))


def to_text(error: Exception) -> str:
    """An exception as text for a row: JSON of its class and its facts."""
    module, name = type(error).__module__, type(error).__qualname__
    facts: dict[str, Any] = {"text": text_of(error)}
    if isinstance(error, MirrorlakeError):
        facts = vars(error)
    elif isinstance(error, KafkaException) and isinstance((error.args or "-")[0], KafkaError):
        of, module, name = error.args[0], "confluent_kafka", "KafkaException"
        flags = (of.fatal(), of.retriable(), of.txn_requires_abort())
        facts = {"error": [of.code(), of.str(), *flags]}
    elif isinstance(error, OSError) and error.errno is not None:
        facts["args"] = [error.errno, error.strerror, error.filename]
    facts = {**facts, "trace": "".join(format_exception(error))}
    return json.dumps([module, name, facts], default=_plain)


def from_text(text: str) -> Exception:
    """The exception that `to_text` had: of the same class, with the same facts, if it is one that a
    driver handles; else TaskFailed."""
    module, name, facts = json.loads(text)
    trace = facts.pop("trace")
    known = module.partition(".")[0] in ("mirrorlake", "builtins", "confluent_kafka")
    named = getattr(importlib.import_module(module), name, None) if known else None
    kind: type[object] = named if isinstance(named, type) else object
    if issubclass(kind, MirrorlakeError):
        return kind.from_facts(facts)
    if issubclass(kind, KafkaException):
        of_kafka: Exception = KafkaException(KafkaError(*facts["error"]))
        return of_kafka
    if issubclass(kind, OSError):
        return kind(*facts.get("args", [facts["text"]]))
    logger.error("a task failed:\n%s", trace)
    return TaskFailed(f"{name}: {facts['text']}")


def _plain(fact: object) -> object:
    """A fact that JSON does not know, as a number if it is one of numpy's, else as text."""
    return int(fact) if isinstance(fact, Integral) else str(fact)


Ran = tuple[list[pa.RecordBatch], Exception | None]


def _ran(task: Task[Job], work: Work[Job]) -> Ran:
    batches: list[pa.RecordBatch] = []
    try:
        for rows in task(work):
            batches.append(rows)
    except Exception as error:  # noqa: BLE001 - the caller of the pool raises it
        return batches, error
    return batches, None


def _first_of(failures: Sequence[Exception]) -> Exception | None:
    for other in failures[1:]:
        logger.warning("one more task failed: %s", text_of(other))
    return failures[0] if failures else None


def _collected(frame: "DataFrame", worker: SparkTask[Job], tasks: int = 0) -> Done:
    from pyspark.sql.pandas.types import from_arrow_schema

    return done_of(frame.mapInArrow(worker, from_arrow_schema(worker.gives)).toArrow(), tasks)


def by_number(
    batches: Iterable[pa.RecordBatch], jobs: Mapping[int, Job] | Sequence[Job]
) -> Iterator[tuple[Job, Iterator[pa.RecordBatch]]]:
    """Jobs with their rows, by the column NUMBER. Rows of a job that its task leaves are
    skipped."""
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
