"""Where the batches of a job end, for Spark's planner, or one that lands without a session."""

import math
import time
from typing import TYPE_CHECKING, NamedTuple

from mirrorlake.landing.job import LandJob
from mirrorlake.landing.pace import Pace
from mirrorlake.landing.ranges import next_ends
from mirrorlake.offsets.positions import Ends, ranges_between

if TYPE_CHECKING:  # a task imports this module, but asks no source
    from mirrorlake.landing.source_ends import SourceEnds


class PlannedBatch(NamedTuple):
    """The end of a batch, next offsets; its note of logs that go on behind it (`offsets/as_of.py`);
    and the ends of the logs that answered."""

    end: Ends
    noted: str | None
    log_ends: Ends


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
        if not any(end > reached.get(key, end) for key, end in log_ends.items()):
            return None
        if self._too_soon(reached, pace, log_ends):
            return None
        waiting = () if due else job.waiting
        end = next_ends(reached, log_ends, max_records=max_records, waiting=waiting, pace=pace)
        if any(end[key] != reached[key] for key in job.waiting):
            self._quiet_since = time.monotonic()
        if end == reached:
            return None
        self._began = time.monotonic()
        return PlannedBatch(end, self._noted(end, log_ends), log_ends)

    def close(self) -> None:
        """Close the client that asks the source."""
        if self._ends is not None:
            self._ends.close()

    def _too_soon(self, reached: Ends, pace: Pace, log_ends: Ends) -> bool:
        """Whether a batch waits for more records: there are few, and in a store commits cost."""
        job = self._job
        if job.final is not None or job.directory is None or not job.directory.in_store:
            return False
        apart = pace.apart_seconds(job.trigger_seconds, job.apart_seconds)
        # The next call comes a trigger later: take the nearer of the two times.
        if time.monotonic() - self._began >= apart - job.trigger_seconds / 2:
            return False
        return job.is_small(ranges_between(reached, log_ends))

    def _noted(self, end: Ends, log_ends: Ends) -> str | None:
        """The note of a batch of logs that go on behind it; None unless it reaches all ends."""
        if log_ends != end and any(log_ends.get(key) != at for key, at in end.items()):
            return None
        final = self._job.final is not None
        return self._job.final_noted if final else self._log_ends().noted(end)

    def _log_ends(self) -> "SourceEnds":
        from mirrorlake.landing.source_ends import SourceEnds

        if self._ends is None:
            self._ends = SourceEnds(self._job.alias, self._job.client)
        return self._ends
