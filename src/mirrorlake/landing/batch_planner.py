"""Where the batches of a job end, one behind the other: asked by Spark's planner, or by this
process where it lands without a session."""

import math
import time
from typing import TYPE_CHECKING, NamedTuple

from mirrorlake.landing.job import LandJob
from mirrorlake.landing.pace import Pace
from mirrorlake.landing.ranges import next_ends
from mirrorlake.offsets.positions import Ends, ranges_between

if TYPE_CHECKING:  # a task imports this, and asks no source
    from mirrorlake.landing.source_ends import SourceEnds


class PlannedBatch(NamedTuple):
    """Where a batch ends, next offsets; what it notes of logs that go on behind it
    (`offsets/as_of.py`); and where the logs end, as far as they answered."""

    end: Ends
    noted: str | None
    log_ends: Ends


class BatchPlanner:
    """Plans the batches of one query."""

    def __init__(self, job: LandJob) -> None:
        self._job = job
        self._ends: SourceEnds | None = None
        #: Since when, by time.monotonic(), nothing of `job.waiting` was read, and the newest batch.
        self._quiet_since = self._began = -math.inf

    def next(self, reached: Ends, pace: Pace, max_records: int) -> PlannedBatch | None:
        """The batch behind the one that came to `reached`; None where there is nothing to read, or
        it waits for more. Raises ClusterUnreachable where no leader answers for long."""
        job = self._job
        due = time.monotonic() - self._quiet_since >= job.waiting_seconds
        log_ends = self._log_ends().known(reached) if job.final is None else job.final
        # Of thousands that rest this is all that is done, many times a second.
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
        """Let go of what asks the source."""
        if self._ends is not None:
            self._ends.close()

    def _too_soon(self, reached: Ends, pace: Pace, log_ends: Ends) -> bool:
        """Whether a batch waits for more records: few are there, and commits take long, and have a
        price, in a store."""
        job = self._job
        if job.final is not None or job.directory is None or not job.directory.in_store:
            return False
        apart = pace.apart_seconds(job.trigger_seconds, job.apart_seconds)
        # It is asked again a trigger later: the nearest of these times is taken.
        if time.monotonic() - self._began >= apart - job.trigger_seconds / 2:
            return False
        return job.is_small(ranges_between(reached, log_ends))

    def _noted(self, end: Ends, log_ends: Ends) -> str | None:
        """What a batch notes of logs that go on behind it; None where it does not reach the ends of
        all."""
        if log_ends != end and any(log_ends.get(key) != at for key, at in end.items()):
            return None
        final = self._job.final is not None
        return self._job.final_noted if final else self._log_ends().noted(end)

    def _log_ends(self) -> "SourceEnds":
        from mirrorlake.landing.source_ends import SourceEnds

        if self._ends is None:
            self._ends = SourceEnds(self._job.alias, self._job.client)
        return self._ends
