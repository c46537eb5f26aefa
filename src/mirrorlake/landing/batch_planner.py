"""Where the batches of a job end, for Spark's planner, or one that lands without a session."""

import math
import time
from typing import TYPE_CHECKING, NamedTuple

from mirrorlake.landing.job import LandJob
from mirrorlake.landing.pace import Pace
from mirrorlake.landing.ranges import news_of, next_ranges
from mirrorlake.offsets.as_of import reaches_all
from mirrorlake.offsets.positions import Ends, Ranges

if TYPE_CHECKING:  # a task imports this module, but asks no source
    from mirrorlake.landing.source_ends import SourceEnds


class PlannedBatch(NamedTuple):
    """What a batch reads; where it ends, next offsets of all partitions; its note of logs that go
    on behind it (`offsets/as_of.py`); and all that there is to read."""

    ranges: Ranges
    end: Ends
    noted: str | None
    news: Ranges

    @classmethod
    def after(cls, reached: Ends, ranges: Ranges, news: Ranges) -> "PlannedBatch":
        """The batch that reads `ranges` of `news`, after the one that ended at `reached`."""
        end = {**reached, **{key: behind for key, (_, behind) in ranges.items()}}
        return cls(ranges, end, None, news)


class BatchPlanner:
    """Plans the batches of one query."""

    def __init__(self, job: LandJob) -> None:
        self._job = job
        self._ends: SourceEnds | None = None
        #: When a partition of `job.waiting` was last read, and the newest batch began, by
        #: time.monotonic().
        self._quiet_since = self._began = -math.inf

    def next(self, reached: Ends, pace: Pace, max_records: int) -> PlannedBatch | None:
        """The batch after the one that ended at `reached`; None if there is nothing to read, or it
        waits for more. Raises ClusterUnreachable when no leader has answered for long."""
        job = self._job
        due = time.monotonic() - self._quiet_since >= job.waiting_seconds
        log_ends = self._log_ends().known(reached) if job.final is None else job.final
        # For thousands of quiet partitions this is all that is done, many times a second.
        if log_ends == reached:
            return None
        # What follows knows only the partitions with news, as the others cost each batch the same.
        news = news_of(reached, log_ends)
        if not news or self._too_soon(news, pace):
            return None
        ranges = next_ranges(news, max_records, () if due else job.waiting, pace)
        if any(key in ranges for key in job.waiting):
            self._quiet_since = time.monotonic()
        if not ranges:
            return None
        self._began = time.monotonic()
        batch = PlannedBatch.after(reached, ranges, news)
        return batch._replace(noted=self._noted(batch.end, log_ends)) if ranges == news else batch

    def close(self) -> None:
        """Close the client that asks the source."""
        if self._ends is not None:
            self._ends.close()

    def _too_soon(self, news: Ranges, pace: Pace) -> bool:
        """Whether a batch waits for more records: there are few, and in a store commits cost."""
        job = self._job
        if job.final is not None or job.directory is None or not job.directory.in_store:
            return False
        apart = pace.apart_seconds(job.trigger_seconds, job.apart_seconds)
        # The next call comes a trigger later: take the nearer of the two times.
        if time.monotonic() - self._began >= apart - job.trigger_seconds / 2:
            return False
        return job.is_small(news)

    def _noted(self, end: Ends, log_ends: Ends) -> str | None:
        """The note of a batch of logs that go on behind it; None unless it reaches all ends."""
        if self._job.final is None:
            return self._log_ends().noted(end, log_ends)
        return self._job.final_noted if reaches_all(end, log_ends) else None

    def _log_ends(self) -> "SourceEnds":
        from mirrorlake.landing.source_ends import SourceEnds

        if self._ends is None:
            self._ends = SourceEnds(self._job.alias, self._job.client)
        return self._ends
