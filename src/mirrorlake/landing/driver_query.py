"""A landing query without a session: this process plans small batches, lands each, and begins the
next one a trigger's time after it. A Spark query takes over once what there is to land would need
many small batches: no JVM starts before."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import closing

from mirrorlake.kafka.refusals import silence_in_words
from mirrorlake.lake.small_batches import Demand
from mirrorlake.landing.batch_planner import BatchPlanner, PlannedBatch
from mirrorlake.landing.job import LandJob
from mirrorlake.landing.ranges import next_ranges
from mirrorlake.landing.sinks import PathSink
from mirrorlake.offsets.positions import Ends, offset_count
from mirrorlake.spark.session_start import SessionStart
from mirrorlake.threads import in_thread

#: The most seconds between the starts of batches that take long.
APART_SECONDS = 0.5
#: For how long landing leaves the cores to a session that starts for a backlog, and how often it
#: looks for it, seconds. Measured on two cores: small batches beside the start double its time, and
#: land a quarter of what Spark's tasks land. A start that takes longer waits for something else.
YIELD_SECONDS, LOOK_SECONDS = 10.0, 0.1


def apart(trigger_seconds: float, took: float) -> float:
    """How long after the start of a small batch that `took` so many seconds the next one starts.
    One of hundreds of partitions takes longer than the trigger's time, and leaves as much time to
    the flows that produce it. At once if the trigger's time is 0."""
    longest = APART_SECONDS if trigger_seconds else 0.0
    return max(trigger_seconds, min(2 * took, longest))


class DriverQuery:
    """Lands a job from its construction on until it is stopped, fails or is outgrown; it has what
    landing needs of a `StreamingQuery`. `session` is None if little is known to land."""

    def __init__(self, sink: PathSink, job: LandJob, session: SessionStart | None) -> None:
        self._sink = sink
        self._job = job
        self._session = session
        self._planner = BatchPlanner(job)
        self._demand = Demand()
        self._yields_until = 0.0  # by time.monotonic(); 0 while no session was begun
        self._stopping = threading.Event()
        self._in_batch = False
        #: Whether it has ended so that a Spark query can take over.
        self.outgrown = False
        self._ended = in_thread(f"landing from cluster {job.alias} itself", self._land)

    @property
    def isActive(self) -> bool:
        """Whether the query goes on."""
        return not self._ended.done()

    @property
    def status(self) -> dict[str, bool]:
        """Whether a batch is in hand."""
        return {"isTriggerActive": self._in_batch}

    def exception(self) -> Exception | None:
        """The error that ended the query, if it failed."""
        error = self._ended.exception() if self._ended.done() else None
        if error is None or isinstance(error, Exception):
            return error
        raise error  # no new query helps against this

    def stop(self) -> None:
        """Let no more batch begin; one in hand goes on until the sink is closed."""
        self._stopping.set()

    def _land(self) -> None:
        job, numbers, due = self._job, itertools.count(), 0.0
        with closing(self._planner), silence_in_words(job.alias, job.client):
            while not (self._stopping.wait(due - time.monotonic()) or self.outgrown):
                began = time.monotonic()
                if self._yields():
                    due = began + LOOK_SECONDS
                elif self._land_next(numbers):
                    due = 0.0
                else:
                    due = began + apart(job.trigger_seconds, time.monotonic() - began)

    def _yields(self) -> bool:
        """Whether a session is starting that is to take over, and should have the cores."""
        starting = self._session is not None and not self._session.over
        return starting and time.monotonic() < self._yields_until

    def _land_next(self, numbers: Iterator[int]) -> bool:
        """Land the next batch, if there is one; returns whether more was left of it."""
        reached = self._sink.covered() or self._job.starts
        planned = self._planner.next(reached, self._sink.pace, self._job.max_records)
        if planned is None:
            return False
        batch = self._small(reached, planned)
        if self.outgrown:
            return False
        self._in_batch = True
        self._sink.take(batch.ranges, batch.end, batch.noted, next(numbers))
        self._in_batch = False
        return batch is not planned

    def _small(self, reached: Ends, batch: PlannedBatch) -> PlannedBatch:
        """As much of a batch as this process lands at a time. If much more is left, ask for a
        session, which takes over once it is there."""
        most, left = self._sink.small_records, offset_count(batch.news)
        much, session = self._demand.worth_a_session(left / max(1, most)), self._session
        if much and session is not None:
            self.outgrown = session.over
            session.begin()
            self._yields_until = self._yields_until or time.monotonic() + YIELD_SECONDS
        if self._sink.is_small(batch.ranges):
            return batch
        ranges = next_ranges(batch.news, most, pace=self._sink.pace)
        return PlannedBatch.after(reached, ranges, batch.news)
