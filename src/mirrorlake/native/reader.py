"""Reads ranges of offsets of partitions as Arrow, by librdkafka and the compiled loops: no record
becomes an object.

A range is over when a record at its end or behind it was seen, or the record right before its end,
or the end of the log at the range's end or behind it (for a read_committed consumer: the last
stable offset, KIP-98). Between lie only aborted records, markers, or gaps of compaction.
"""

import ctypes as C
from collections.abc import Collection, Container, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.native import PATIENCE_SECONDS, columns
from mirrorlake.native.columns import ColumnBuffers
from mirrorlake.native.consumer_settings import SEND_SIZE, consumer_settings
from mirrorlake.native.library import library
from mirrorlake.native.queued_consumer import QueuedConsumer
from mirrorlake.native.range_table import FORGOTTEN, NOWHERE, UNKNOWN, Partition, RangeTable
from mirrorlake.native.received import bytes_received
from mirrorlake.native.silence import ClusterSilent, Complaints, Silence, no_record
from mirrorlake.native.structures import COUNTED, Surveyed

#: The most messages taken at a time, and how long to wait for them, ms.
_MESSAGES, _WAIT_MS = 50_000, 25
#: Approximate bytes of records copied at a time. Measured with records of 1 KB, 50,000 at a time:
#: the kernel's clearing of pages took a sixth of a landing's CPU; this size is reused.
_BYTES = 4 << 20
#: How long to wait when testing whether any broker of a silent cluster answers, ms.
_ANY_BROKER_MS = 5_000
#: Records behind the ends of ranges that a reader keeps for the next ranges; and the number up to
#: which it rather fetches them again, to be able to pause.
KEPT, FETCHED_AGAIN = 20_000, 2_000
_NOTHING = np.empty(0, np.int32)


class NativeReader:
    """A `kafka.log.Log`: a consumer without a group, as for `open_log`. `keep`: stay assigned."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        keep: bool = False,
        patience_seconds: float = PATIENCE_SECONDS,
        small_answers: bool = False,
    ) -> None:
        self._library = library()
        self._keep = keep
        self._complaints = Complaints()  # of the cluster, since it last delivered
        effective = consumer_settings(settings, small_answers)
        received = partial(bytes_received, int(effective[SEND_SIZE]))
        self._silence = Silence(patience_seconds, received)
        self._consumer = QueuedConsumer(effective, self._complaints.note)
        self._table = RangeTable()
        #: Assigned partitions of which nothing is fetched between two reads.
        self._paused: set[Partition] = set()
        #: The rows of the ranges being read that are not over.
        self._open = _NOTHING
        #: Rows whose partitions cannot be read, until that is raised.
        self._failed: list[int] = []
        self._messages = np.zeros(_MESSAGES + 2 * KEPT, np.uint64)
        self._kept = 0
        self._most = _MESSAGES  # as many as make about _BYTES, by the last ones

    def read(
        self, ranges: Mapping[Partition, tuple[int, int]]
    ) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        self._begin({key: bounds for key, bounds in ranges.items() if bounds[0] < bounds[1]})
        if self._kept:
            yield from self._columns(self._kept)
        self._reach_log_ends()
        self._finish()  # a caller that stopped in the middle may have left more than is kept
        self._silence.heard()
        while (left := self._left()) > 0:
            # At most as many as are wanted: otherwise it would wait for the last ones.
            taken = self._take(min(self._most, left))
            if taken > 0:
                self._complaints.last = None
                self._silence.heard()
                yield from self._columns(taken)
            elif self._silence.is_too_long():
                raise self._silent()
            self._finish()

    def keep_prefetched(self, keys: Collection[Partition]) -> None:
        wanted = frozenset(keys)
        self._forget([known for known in self._table.numbers if known not in wanted])

    def close(self) -> None:
        if self._consumer.handle is not None:
            self._release()
            self._stop(self._table.numbers)
            self._consumer.close()

    def _begin(self, ranges: Mapping[Partition, tuple[int, int]]) -> None:
        """Assign partitions that are not yet read from the wanted offset, and want no others."""
        self._leave_off(ranges)
        known = [key for key in ranges if key in self._table.numbers]
        at = self._table.rows["next"][self._table.numbers_of(known)].tolist()
        self._forget([key for key, next_ in zip(known, at, strict=True) if next_ != ranges[key][0]])
        moved = {key: bounds for key, bounds in ranges.items() if key not in self._table.numbers}
        self._table.enter(moved)
        self._resume(self._paused.intersection(ranges))
        self._open = self._table.numbers_of(ranges)
        self._table.rows["end"][self._open] = [end for _, end in ranges.values()]
        if moved:
            self._consumer.start({key: start for key, (start, _) in moved.items()})

    def _leave_off(self, wanted: Container[Partition]) -> None:
        """Cut ranges that were not read to their ends: the next ones do not continue them."""
        left, rows = self._open, self._table.rows
        rows["end"][left] = np.minimum(rows["next"][left], rows["end"][left])
        if not self._keep:
            keys = self._keys(left)
            self._forget([key for key in keys if key not in wanted])

    def _stop(self, keys: Collection[Partition]) -> None:
        self._resume(self._paused.intersection(keys))  # otherwise a restarted one stays paused
        self._consumer.stop(keys)

    def pause(self) -> None:
        """See `kafka.log.Log`. At the ends of growing logs a broker would otherwise answer at each
        record, and each time about all partitions. What was fetched ahead is fetched again."""
        ahead = self._kept + self._library.queue_length(self._consumer.queue)
        running = self._table.numbers.keys() - self._paused
        if running and ahead <= FETCHED_AGAIN:
            self._release()
            # messages taken in front of these ends are released, and come again
            self._table.rows["log_end"][self._table.numbers_of(running)] = UNKNOWN
            with self._places(running) as places:
                self._library.pause_partitions(self._consumer.handle, places)
            self._paused |= running

    def _resume(self, keys: Collection[Partition]) -> None:
        """Resume fetching of some paused partitions from where they were read up to."""
        if keys:
            with self._places(keys) as places:
                self._library.resume_partitions(self._consumer.handle, places)
                # librdkafka notices resumed partitions once a second, and seeks at once
                self._library.check(self._library.seek_partitions(self._consumer.handle, places, 0))
            self._paused.difference_update(keys)

    @contextmanager
    def _places(self, keys: Collection[Partition]) -> Iterator[int]:
        """A librdkafka list of partitions, with the offsets up to which they were read."""
        next_ = self._table.rows["next"][self._table.numbers_of(keys)].tolist()
        places = self._library.annotated(
            {key: (offset, "") for key, offset in zip(keys, next_, strict=True)}
        )
        try:
            yield places
        finally:
            self._library.topic_partition_list_destroy(places)

    def _reach_log_ends(self) -> None:
        """Complete ranges whose rest is covered by a log end that was reported before."""
        rows = self._table.rows
        ends = rows["end"][self._open]
        covered = (rows["log_end"][self._open] >= ends) & (rows["next"][self._open] < ends)
        rows["next"][self._open[covered]] = ends[covered]

    def _forget(self, keys: Collection[Partition]) -> None:
        """Stop reading some partitions, and drop what is kept of them."""
        if not keys:
            return
        self._stop(keys)
        self._table.rows["log_end"][self._table.numbers_of(keys)] = FORGOTTEN
        if self._kept:
            self._kept = self._library.give_back(
                self._library.api, self._messages.ctypes.data, self._kept, self._table.address
            )
        self._table.leave(keys)
        self._open = self._open[self._table.rows["partition"][self._open] != NOWHERE]
        if not self._table.numbers:
            self._drop()

    def _keys(self, numbers: np.ndarray) -> list[Partition]:
        keys = map(self._table.key, numbers.tolist())
        return [key for key in keys if key is not None]

    def _left(self) -> int:
        """How many offsets are still to be covered."""
        rows = self._table.rows
        return int((rows["end"][self._open] - rows["next"][self._open]).sum())

    def _take(self, max_records: int, wait_ms: int = _WAIT_MS) -> int:
        """Take messages from the client, behind the kept ones. Returns how many are there."""
        at = self._messages.ctypes.data + 8 * self._kept
        taken = self._consumer.take(at, max_records, wait_ms)
        return self._kept + taken if taken else 0

    def _columns(self, count: int) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        """First messages' records within ranges. Gives messages back, unless behind the ends."""
        done, self._kept = 0, count
        while done < self._kept:
            lib, table = self._library, self._table
            messages = self._messages.ctypes.data + 8 * done
            taken, places, counted = self._surveyed(messages, self._kept - done)
            room = ColumnBuffers(counted)
            left = lib.fill(
                *(lib.api, messages, taken, places.ctypes.data, table.address),
                *(table.touched.ctypes.data, counted.touched, table.cursors.ctypes.data),
                *(C.addressof(room.columns), 1),
            )
            rest = self._messages[done + taken : self._kept].copy()
            done += left
            self._kept = done + len(rest)
            self._messages[done : self._kept] = rest
            counts = self._counts(counted.touched)
            self._raise_for(counted.error)
            if room.rows:
                self._most = max(1, min(_MESSAGES, _BYTES * room.rows // max(1, room.size)))
                batch, first = room.batch(), 0
                for key, rows in counts:
                    yield key, batch.slice(first, rows)
                    first += rows

    def _surveyed(self, messages: int, count: int) -> tuple[int, np.ndarray, Surveyed]:
        """How many messages are copied at once, where they belong, and the space that they need.
        Fewer than all if Arrow's columns are full. Raises OverflowError if one is too large."""
        lib, table, counted = self._library, self._table, Surveyed(most=columns.MAX_SIZE)
        places = np.empty(count, np.int32)
        taken = lib.survey(
            *(lib.api, messages, count, table.address, places.ctypes.data),
            *(table.touched.ctypes.data, C.addressof(counted)),
        )
        if not taken:
            raise OverflowError(f"a record has more than {columns.MAX_SIZE} bytes, or headers")
        return taken, places, counted

    def _counts(self, touched: int) -> list[tuple[Partition, int]]:
        """How many records of each partition were copied, in their order; resets the counts."""
        rows, numbers = self._table.rows, self._table.touched[:touched]
        counts = rows["count"][numbers].tolist()
        self._failed += numbers[rows["error"][numbers] != 0].tolist()
        for name in COUNTED:
            rows[name][numbers] = 0
        return [
            (key, count)
            for number, count in zip(numbers.tolist(), counts, strict=True)
            if count and (key := self._table.key(number)) is not None
        ]

    def _raise_for(self, general: int) -> None:
        while self._failed:
            number = self._failed.pop()
            row, key = self._table.rows[number], self._table.key(number)
            if key is not None and (code := int(row["error"])):
                error, offset = KafkaError(code), int(row["next"])
                self._forget([key])
                text = f"{key[0]}-{key[1]} cannot be read from offset {offset}: {error.str()}"
                raise KafkaException(KafkaError(code, text))
        if general:
            self._consumer.note(KafkaError(general))

    def _finish(self) -> None:
        """Stop fetching ranges that are over, unless more may follow; keep few of their records."""
        rows, open_ = self._table.rows, self._open
        is_over = rows["next"][open_] >= rows["end"][open_]
        self._open = open_[~is_over]
        if not self._keep:
            self._forget(self._keys(open_[is_over]))
        elif self._kept > KEPT:
            self._forget(self._keys(np.flatnonzero(rows["next"] >= rows["end"])))

    def _drop(self) -> None:
        """Release all once nothing is read: librdkafka keeps what it fetched ahead until polled."""
        while (taken := self._take(_MESSAGES, 0)) > 0:
            self._kept = taken
            self._release()
        self._table, self._open, self._failed = RangeTable(), _NOTHING, []

    def _release(self) -> None:
        self._kept = self._library.give_back(
            self._library.api, self._messages.ctypes.data, self._kept, None
        )

    def _silent(self) -> KafkaException:
        silent = self._silence.seconds
        open_ = [f"{topic}-{partition}" for topic, partition in self._keys(self._open)]
        # The answer shows if only these partitions are silent: some leaders may be away.
        if code := self._consumer.look_up(_ANY_BROKER_MS):
            return ClusterSilent(self._complaints.last or KafkaError(code))
        return no_record(open_, silent, self._complaints.last)
