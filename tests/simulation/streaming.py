"""What Spark's streaming query from Kafka into Delta does, as far as it decides what is landed, and
how it may die.

A batch: `offsets/N` is written, then the Delta commit (with the query's name and N, so once), then
`commits/N`. With `failOnDataLoss` it fails where partitions went away, begin above 0 while it runs,
or lie below the log's start. Whatever a batch fails with ends the query, and no query goes on from
where another one was.
"""

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass

from mirrorlake.landing.pace import Pace
from mirrorlake.offsets.positions import Ranges, TopicAndPartition, offset_count, ranges_between
from tests.simulation.kafka import Cluster, timed_out
from tests.simulation.stage import Row, Stage
from tests.simulation.steps import Steps

Ends = dict[TopicAndPartition, int]


class QueryFailed(Exception):
    """The query ended with an error."""


@dataclass(frozen=True)
class QueryPlan:
    """What a query was told: where each partition begins; generations, where not 0; bounds of a
    batch."""

    alias: str
    starts: Mapping[TopicAndPartition, int]
    generations: Mapping[TopicAndPartition, int]
    max_records: int
    files: int


class Reader:
    """Reads ranges of a cluster's logs and commits them to the stage, known by a name."""

    def __init__(
        self, cluster: Cluster, stage: Stage, application: str, plan: QueryPlan, steps: Steps
    ) -> None:
        self.cluster, self.stage, self.plan, self.steps = cluster, stage, plan, steps
        self.application = application
        #: Whether a commit is known to be there, or not to be.
        self.compared = True

    def land(self, start: Ends, end: Ends, number: int, salt: int) -> None:
        """One batch. Raises QueryFailed, and what a call or a commit does."""
        rows: dict[TopicAndPartition, list[Row]] = {}
        for key, until in end.items():
            log, first = self.cluster.log(*key), start[key]
            if until < first:
                raise QueryFailed(
                    f"Partition {key}'s offset was changed from {first} to {until}, some data may "
                    "have been missed"
                )
            if log is None or (first < log.start and first < until):
                raise QueryFailed(
                    f"{key}: offset {first} is below the log's start. Some data may have been lost"
                )
            if until > log.end:
                raise QueryFailed(
                    f"{key}: offset {until} is behind the log's end. Some data may have been lost"
                )
            rows[key] = [
                Row(
                    self.plan.alias,
                    *key,
                    self.plan.generations.get(key, 0),
                    offset,
                    entry.timestamp,
                    entry.key,
                    entry.value,
                    entry.headers,
                )
                for offset, entry in log.read(first, until)
            ]
        self.steps.reach("batch read", timed_out)
        self.compared = False
        self.stage.append(self._dealt(rows, salt), self.application, number)
        self.compared = True

    def _dealt(self, rows: Mapping[TopicAndPartition, list[Row]], salt: int) -> list[list[Row]]:
        """Partitions over files, as `coalesce` does: neighbours together, a large one cut between
        two files."""
        every = [row for key in sorted(rows) for row in rows[key]]
        if self.plan.files < 2 or len(every) < 2:
            return [every]
        cut = random.Random(salt).randint(1, len(every) - 1)
        return [every[:cut], every[cut:]]


class Query:
    """A running query, as Spark shows it."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._number = -1
        self._failure: Exception | None = None
        self.isActive = True
        self.status = {"isTriggerActive": False}
        self.progress: Ends = {}

    def exception(self) -> Exception | None:
        """What ended it."""
        return self._failure

    def stop(self) -> None:
        """End it."""
        self.isActive = False

    def trigger(self, salt: int = 0) -> bool:
        """One batch; False when there is nothing to do. What it fails with ends the query."""
        try:
            return self._batch(salt)
        except Exception as error:  # noqa: BLE001 - who runs the query sees it
            self._failure, self.isActive = error, False
            return True

    def _batch(self, salt: int) -> bool:
        reader = self._reader
        if self._number < 0:
            reader.steps.reach("query began", timed_out)
        start = self.progress or dict(reader.plan.starts)
        latest = self._latest()
        if gone := [key for key in start if key not in latest]:
            raise QueryFailed(f"{gone} are gone. Some data may have been missed (were gone)")
        end = self._limited(start, latest)
        if end == start:
            return False
        reader.steps.need_room("offsets")
        self._number += 1
        reader.steps.reach("offsets written", timed_out)
        reader.land(start, end, self._number, salt)
        reader.steps.need_room("commits")
        reader.steps.reach("commits written", timed_out)
        self.progress = dict(end)
        return True

    def _latest(self) -> Ends:
        logs = {key: self._reader.cluster.log(*key) for key in self._reader.plan.starts}
        return {key: log.stable for key, log in logs.items() if log is not None}

    def _limited(self, start: Ends, latest: Ends) -> Ends:
        """`maxOffsetsPerTrigger`, dealt in turns."""
        left, end = self._reader.plan.max_records, dict(start)
        for key in sorted(latest):
            take = max(0, min(left, latest[key] - start[key]))
            end[key] = start[key] + take if latest[key] >= start[key] else latest[key]
            left -= take
        return end


class Sink:
    """`PathSink`, or `SessionSink`, as far as landing asks it: what this process, or a query, has
    committed under a name."""

    failure: Exception | None = None

    def __init__(self, reader: Reader, few: int) -> None:
        self.reader, self.small_records = reader, few
        self.query: Query | None = None
        self.pace, self.numbers, self.salt = Pace(), itertools.count(), 0
        self._reached: Ends = {}

    @property
    def compared(self) -> bool:
        """Whether a commit is known to be there, or not to be."""
        return self.reader.compared

    def covered(self) -> Ends:
        """How far it has come."""
        return self._reached if self.query is None else self.query.progress

    def is_small(self, ranges: Ranges) -> bool:
        """Whether a process lands so much itself."""
        return offset_count(ranges) <= self.small_records

    def take(self, ranges: Ranges, end: Ends, _noted: str | None, number: int) -> None:
        """Land a batch here."""
        start = {**self.reader.plan.starts, **self._reached}
        assert ranges == ranges_between(start, end), "a batch reads all up to its end"
        self.reader.land(start, dict(end), number, self.salt)
        self._reached = dict(end)

    def fenced(self) -> bool:
        """Whether nothing is taken any more."""
        return self.reader.stage.is_fenced(self.reader.application)

    def stop_after_batch(self) -> None:
        """No batch is on its way."""

    def close(self, _interrupted_after: float | None = None) -> None:
        """Nothing is kept."""
