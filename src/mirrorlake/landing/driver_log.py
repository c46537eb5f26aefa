"""The client by which this process reads small batches itself. It is kept from one batch to the
next, and replaced once it knows many more partitions than these have."""

from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.client_pool import Breadth
from mirrorlake.kafka.log import Log, open_log
from mirrorlake.landing.job import LandJob, Part
from mirrorlake.landing.pace import Pace
from mirrorlake.landing.stage_rows import Read
from mirrorlake.offsets.positions import TopicAndPartition


class DriverLog:
    """Reads parts of a job, one batch after another."""

    def __init__(self, job: LandJob) -> None:
        self._job = job
        self._log: Log | None = None
        #: The partitions that the client has been asked for.
        self._asked: set[TopicAndPartition] = set()
        self._breadth = Breadth()
        #: Whether reading is given up: a stop does not wait for it.
        self.closing = False

    def read(self, pace: Pace, part: Part) -> Read:
        """See `Log.read`. Raises ReplicationError once it is `closing`."""
        if self._breadth.is_outgrown(len(self._asked), len(part.ranges)):
            self.close()
        self._asked.update(part.ranges)
        if self._log is None:
            small_answers = pace.in_small_answers
            self._log = open_log(self._job.client, keep=True, small_answers=small_answers)
        counts = {key: end - first for key, (first, end) in part.ranges.items()}
        over_slow_link = pace.reads_few_partitions(pace.size_of(counts))
        if over_slow_link:
            # Fetching ahead for other partitions would take the link from these.
            self._log.keep_prefetched(part.ranges)
        for key, rows in self._log.read(part.ranges):
            if self.closing:
                raise ReplicationError(
                    f"landing from cluster {self._job.alias} was stopped within a batch"
                )
            yield key, rows
        if not over_slow_link:  # there, what is fetched ahead is read next
            self._log.pause()

    def drop_prefetched(self) -> None:
        """Fetch nothing ahead: others read the next batch."""
        if self._log is not None:
            self._log.keep_prefetched(())

    def close(self) -> None:
        """Let go of the client; the next batch gets another one."""
        log, self._log = self._log, None
        self._asked.clear()
        if log is not None:
            log.close()
