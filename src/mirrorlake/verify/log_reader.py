"""Reads a partition's range of offsets, as record batches: committed, without a group."""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from mirrorlake.errors import ClusterUnreachable, ClusterUnusable
from mirrorlake.kafka.answered_offsets import Bounds, answered_offset, log_bounds
from mirrorlake.kafka.log import Log, open_log
from mirrorlake.kafka.refusals import is_refusal, reason_of, unusable
from mirrorlake.native.silence import ClusterSilent, Complaints
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.encoding import as_records

logger = logging.getLogger(__name__)

#: How long a cluster may be silent, seconds.
SILENCE_SECONDS = 60.0
_AGAIN = "what was compared until now is kept, run verify again"
_UNKNOWN = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
)
_NO_ANSWER = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


class Throttle:
    """Lets so many bytes per second through (None: no limit); at most one second's worth of unused
    bytes is saved up. `clock` returns seconds, and `wait` waits for some."""

    def __init__(
        self, bytes_per_s: float | None, clock: Callable[[], float], wait: Callable[[float], object]
    ) -> None:
        self._rate, self._clock, self._wait = bytes_per_s, clock, wait
        self._free_at = clock()

    def took(self, size: int) -> None:
        """Count `size` bytes as read; wait until the next ones may be read."""
        if not self._rate:
            return
        now = self._clock()
        self._free_at = max(self._free_at, now - 1.0) + size / self._rate
        if self._free_at > now:
            self._wait(self._free_at - now)


class LogReader:
    """Reads one cluster. Not thread safe."""

    def __init__(self, alias: str, settings: Mapping[str, Any], throttle: Throttle) -> None:
        self._alias = alias
        self._throttle = throttle
        self._settings = {**settings, "group.id": f"mirrorlake-verify-{alias}"}
        self._complaints = Complaints()
        self._consumer = Consumer(
            {**self._settings, "logger": logger, "error_cb": self._complaints.note}
        )
        self._log: Log | None = None
        #: Where the log of the last partition read began.
        self.start = 0

    def bounds(self, key: TopicAndPartition) -> Bounds:
        """Where a partition's log begins and ends; empty without it. Raises ClusterUnusable."""
        try:
            return log_bounds(self._consumer, key, SILENCE_SECONDS)
        except KafkaException as error:
            if error.args[0].code() in _UNKNOWN:
                return Bounds(0, 0)
            raise self._unusable(key, error) from error

    def offset_at(self, key: TopicAndPartition, timestamp: int) -> int:
        """The first record not before a time (ms), or the log's end. Raises ClusterUnusable."""
        try:
            (answer,) = self._consumer.offsets_for_times(
                [TopicPartition(*key, timestamp)], SILENCE_SECONDS
            )
            if answer.error is not None:
                raise KafkaException(answer.error)
            if answer.offset == OFFSET_END:
                return self.bounds(key).end
            return answered_offset(answer.offset)
        except KafkaException as error:
            raise self._unusable(key, error) from error

    def read(self, key: TopicAndPartition, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """The committed records from offset `first` to `end` (exclusive), as far as the log has
        them, as RECORDS.

        Raises ClusterUnusable when the cluster falls silent, or refuses.
        """
        at = first
        while True:
            bounds = self.bounds(key)
            self.start = bounds.start
            at, stop = max(at, bounds.start), min(end, bounds.end)
            if at >= stop:
                return
            log = self._log = self._log or open_log(self._settings, True, SILENCE_SECONDS)
            try:
                log.keep_prefetched([key])
                for batch in map(as_records, (rows for _, rows in log.read({key: (at, stop)}))):
                    at = batch.column("offset")[-1].as_py() + 1
                    self._throttle.took(batch.nbytes)
                    yield batch
                log.pause()
                return
            except KafkaException as error:
                self._leave()
                if error.args[0].code() != KafkaError._AUTO_OFFSET_RESET:
                    # else retention removed the offset first
                    raise self._unusable(key, error) from error

    def close(self) -> None:
        """Leave the cluster."""
        self._leave()
        self._consumer.close()

    def _leave(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            log.close()

    def _unusable(self, key: TopicAndPartition, error: KafkaException) -> ClusterUnusable:
        failure = error.args[0]
        self._consumer.poll(0)  # calls `error_cb`
        complaint = failure if isinstance(error, ClusterSilent) else self._complaints.last
        if complaint is not None and (isinstance(error, ClusterSilent) or is_refusal(complaint)):
            return unusable(self._alias, self._settings, complaint)
        if failure.code() not in _NO_ANSWER:
            return ClusterUnusable(
                f"cluster {self._alias} cannot be read: {reason_of(failure)}; {_AGAIN}",
                alias=self._alias,
            )
        return ClusterUnreachable(
            f"cluster {self._alias} gives no records of {key[0]}-{key[1]} within "
            f"{SILENCE_SECONDS:.0f} s; {_AGAIN}",
            alias=self._alias,
        )
