"""What Spark's streaming query from Kafka into Delta does, as far as it decides what is landed, and
how it may die.

A batch: `offsets/N` is written, then the Delta commit (with the query's id and N, so once), then
`commits/N`. A query that starts again does batch N once more if it is not committed. With
`failOnDataLoss` it fails where partitions went away, begin above 0 while it runs, or lie below the
log's start.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from mirrorlake.errors import Fenced
from mirrorlake.offsets.positions import TopicAndPartition
from tests.simulation.kafka import Cluster, timed_out
from tests.simulation.stage import Row, Stage
from tests.simulation.steps import Steps

Ends = dict[TopicAndPartition, int]


class QueryFailed(Exception):
    """The query ended with an error."""


@dataclass
class Checkpoint:
    """The folder of a query: its id, where it began, and its batches' ends."""

    query_id: str
    began: Ends | None = None
    offsets: dict[int, Ends] = field(default_factory=dict)
    commits: set[int] = field(default_factory=set)

    def ends(self) -> Ends:
        """Where the newest committed batch ends."""
        return self.offsets[max(self.commits)] if self.commits else {}


@dataclass(frozen=True)
class QueryPlan:
    """What a query was told: the partitions, and where each begins; generations, where not 0;
    bounds of a batch."""

    alias: str
    starts: Mapping[TopicAndPartition, int]
    generations: Mapping[TopicAndPartition, int]
    max_records: int
    files: int


class Query:
    """A running query."""

    def __init__(
        self, cluster: Cluster, stage: Stage, checkpoint: Checkpoint, plan: QueryPlan, steps: Steps
    ) -> None:
        self._cluster = cluster
        self._stage = stage
        self._checkpoint = checkpoint
        self._plan = plan
        self._steps = steps
        self.progress: Ends = {}

    def trigger(self, salt: int = 0) -> bool:
        """One batch; False when there is nothing to do. Raises QueryFailed."""
        number = max(self._checkpoint.offsets, default=-1)
        if number >= 0 and number not in self._checkpoint.commits:
            start = self._checkpoint.offsets.get(number - 1, self._checkpoint.began or {})
            self._run(number, start, self._checkpoint.offsets[number], salt)
            return True
        if self._checkpoint.began is None:
            self._checkpoint.began = dict(self._plan.starts)
            self._steps.reach("query began", timed_out)
        start = self._checkpoint.ends() or self._checkpoint.began
        end = self._limited(start, self._latest())
        if end == start:
            return False
        self._steps.need_room("offsets")
        self._checkpoint.offsets[number + 1] = end
        self._steps.reach("offsets written", timed_out)
        self._run(number + 1, start, end, salt)
        return True

    def check_owner(self) -> None:
        """Raise Fenced if another process has taken over, as the landing worker asks: Delta's own
        sink does not."""
        application = self._checkpoint.query_id
        if self._stage.is_fenced(application):
            raise Fenced(f"{application} was taken over by another process")

    def _log_start(self, key: TopicAndPartition) -> int:
        log = self._cluster.log(*key)
        return 0 if log is None else log.start

    def _latest(self) -> Ends:
        logs = {key: self._cluster.log(*key) for key in self._plan.starts}
        return {key: log.stable for key, log in logs.items() if log is not None}

    def _limited(self, start: Ends, latest: Ends) -> Ends:
        """`maxOffsetsPerTrigger`, dealt in turns."""
        begins = {key: start.get(key, self._log_start(key)) for key in latest}
        left, end = self._plan.max_records, dict(begins)
        for key in sorted(latest):
            take = max(0, min(left, latest[key] - begins[key]))
            end[key] = begins[key] + take if latest[key] >= begins[key] else latest[key]
            left -= take
        return {
            **end,
            **{key: at for key, at in start.items() if key not in latest and key not in end},
        }

    def _run(self, number: int, start: Ends, end: Ends, salt: int) -> None:
        rows: dict[TopicAndPartition, list[Row]] = {}
        there = self._latest()
        gone = [key for key in start if key not in there]
        if gone:
            raise QueryFailed(f"{gone} are gone. Some data may have been missed (were gone)")
        for key, until in end.items():
            log = self._cluster.log(*key)
            first = start[key]
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
                    self._plan.alias,
                    key[0],
                    key[1],
                    self._plan.generations.get(key, 0),
                    offset,
                    entry.timestamp,
                    entry.key,
                    entry.value,
                    entry.headers,
                )
                for offset, entry in log.read(first, until)
            ]
        self._steps.reach("batch read", timed_out)
        self._stage.append(self._dealt(rows, salt), self._checkpoint.query_id, number)
        self._steps.need_room("commits")
        self._checkpoint.commits.add(number)
        self._steps.reach("commits written", timed_out)
        self.progress = dict(end)

    def _dealt(self, rows: Mapping[TopicAndPartition, list[Row]], salt: int) -> list[list[Row]]:
        """Partitions over files, as `coalesce` does: neighbours together, a large one cut between
        two files."""
        every = [row for key in sorted(rows) for row in rows[key]]
        if self._plan.files < 2 or len(every) < 2:
            return [every]
        cut = random.Random(salt).randint(1, len(every) - 1)
        return [every[:cut], every[cut:]]
