"""Reading ranges of offsets of partitions as Arrow, by librdkafka and the compiled loops: no record
becomes an object.

A range is over when a record at its end or behind it was seen, the record in front of its end, or
the end of the log where that is at the range's end or behind it (of a read_committed consumer: the
last stable offset, KIP-98): what lies between are aborted records, transaction markers, or what
compaction left.
"""

import ctypes as C
import logging
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.native import PATIENCE_SECONDS
from mirrorlake.native.columns import ColumnBuffers
from mirrorlake.native.consumer_settings import consumer_settings
from mirrorlake.native.library import CONSUMER, COUNTED, CURSOR_BYTES, RANGE, library
from mirrorlake.native.silence import ClusterSilent, Complaints, no_record

logger = logging.getLogger(__name__)

Partition = tuple[str, int]
#: librdkafka's error callback: client, code, text, opaque.
_ON_ERROR = C.CFUNCTYPE(None, C.c_void_p, C.c_int, C.c_char_p, C.c_void_p)
#: Messages that are taken at a time, at most, and how long they are waited for, ms.
_MESSAGES, _WAIT_MS = 50_000, 25
#: Bytes of records that are copied at a time, about. Measured with records of 1 KB, 50,000 at a
#: time: the kernel's clearing of fresh pages took a sixth of a landing's CPU; memory of this size
#: is used again.
_BYTES = 4 << 20
#: How long an answer to who leads partitions is waited for, ms; and to whether any broker answers,
#: of a silent cluster.
_LOOK_UP_MS, _ANY_BROKER_MS = 1_000, 5_000
#: Records behind the ends of ranges that a reader keeps for the next ranges.
KEPT = 20_000
#: No partition has it: a place that is not read any more.
_NOWHERE = -1


class NativeReader:
    """A `kafka.log.Log`: a consumer of no group, with what `open_log` says of one. To `keep`
    partitions is to leave them assigned."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        keep: bool = False,
        patience_seconds: float = PATIENCE_SECONDS,
        small_answers: bool = False,
    ) -> None:
        self._library = library()
        self._keep = keep
        self._patience = patience_seconds
        self._complaints = Complaints()  # of the cluster, since something came of it
        self._on_error = _ON_ERROR(self._note)
        effective = consumer_settings(settings, keep, small_answers)
        self._handle: int | None = self._library.client(CONSUMER, effective, self._prepare)
        self._queue = self._library.queue_new(self._handle)
        main = self._library.queue_get_main(self._handle)
        self._library.queue_forward(main, self._queue)
        self._library.queue_destroy(main)
        self._numbers: dict[Partition, int] = {}
        self._topics: dict[str, int] = {}
        self._names: list[C.c_char_p] = []
        self._ranges = np.zeros(0, RANGE)
        self._messages = np.zeros(_MESSAGES + 2 * KEPT, np.uint64)
        self._kept = 0
        self._most = _MESSAGES  # as many as are about _BYTES, by the last ones
        self._heard = 0.0

    def read(
        self, ranges: Mapping[Partition, tuple[int, int]]
    ) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        """See `kafka.log.Log`."""
        self._begin({key: bounds for key, bounds in ranges.items() if bounds[0] < bounds[1]})
        if self._kept:
            yield from self._columns(self._kept)
        self._reach_log_ends()
        self._heard = time.monotonic()
        while (left := self._left()) > 0:
            # Not more than are wanted: else the last ones would be waited for.
            taken = self._take(min(self._most, left))
            if taken > 0:
                self._heard, self._complaints.last = time.monotonic(), None
                yield from self._columns(taken)
            elif time.monotonic() - self._heard > self._patience:
                raise self._silent()
            self._finish()

    def keep_prefetched(self, keys: Collection[Partition]) -> None:
        """See `kafka.log.Log`."""
        if others := [known for known in self._numbers if known not in keys]:
            self._forget(others)

    def close(self) -> None:
        """Let go of the client, and of what it fetched."""
        if self._handle is not None:
            self._release()
            self._stop(self._numbers)
            for topic in self._topics.values():
                self._library.topic_destroy(topic)
            self._library.queue_destroy(self._queue)
            self._library.destroy(self._handle)
            self._handle = None

    def _prepare(self, conf: int) -> None:
        self._library.conf_set_error_cb(conf, C.cast(self._on_error, C.c_void_p))

    def _note(self, _client: int, code: int, text: bytes, _opaque: int) -> None:
        """Note what the client complains of; called by librdkafka while messages are taken."""
        error = KafkaError(code, text.decode(errors="replace"))
        logger.info("a source cluster says: %s", error.str())
        self._complaints.note(error)

    def _begin(self, ranges: Mapping[Partition, tuple[int, int]]) -> None:
        """Assign what is not read already from where it is wanted."""
        moved = {}
        for key, (start, end) in ranges.items():
            number = self._numbers.get(key)
            if number is None:
                moved[key] = start
            elif self._ranges[number]["next"] != start:
                self._forget([key])
                moved[key] = start
            else:
                self._ranges[number]["end"] = end
        if not moved:
            return
        if len(self._ranges) > 2 * len(self._numbers) + 1_000:
            self._compact()
        fresh = np.zeros(len(moved), RANGE)
        for number, (key, start) in enumerate(moved.items()):
            self._numbers[key] = len(self._ranges) + number
            self._names.append(C.c_char_p(key[0].encode()))
            name = C.cast(self._names[-1], C.c_void_p).value
            fresh[number] = (name, 0, key[1], start, ranges[key][1], -1, *([0] * 7))
        self._ranges = np.concatenate([self._ranges, fresh])
        self._start(moved)

    def _start(self, offsets: Mapping[Partition, int]) -> None:
        """Have partitions fetched from these offsets on, as a consumer of no group does."""
        lib, known = self._library, len(self._topics)
        for (topic, partition), offset in offsets.items():
            if topic not in self._topics:
                self._topics[topic] = lib.topic_new(self._handle, topic.encode(), None)
            if lib.consume_start_queue(self._topics[topic], partition, offset, self._queue) != 0:
                raise KafkaException(KafkaError(lib.last_error()))
        if len(self._topics) > known:
            # Ask who leads the partitions of new topics: librdkafka looks for such topics once a
            # second. Where no broker answers it goes on asking by itself.
            lib.look_up(self._handle, None, _LOOK_UP_MS)

    def _stop(self, keys: Iterable[Partition]) -> None:
        for topic, partition in keys:
            self._library.consume_stop(self._topics[topic], partition)

    def _compact(self) -> None:
        """Leave no room for what is not read any more."""
        self._ranges = self._ranges[list(self._numbers.values())]
        self._names = [self._names[number] for number in self._numbers.values()]
        self._numbers = {key: number for number, key in enumerate(self._numbers)}

    def _reach_log_ends(self) -> None:
        """End ranges that hold nothing but what the end of a log, reported before, has already
        covered."""
        ends, next_ = self._ranges["end"], self._ranges["next"]
        at_end = (self._ranges["log_end"] >= ends) & (next_ < ends)
        next_[at_end] = ends[at_end]

    def _forget(self, keys: list[Partition]) -> None:
        """Read some partitions no more, and drop what is kept of them."""
        self._stop(keys)
        for key in keys:
            row = self._ranges[self._numbers.pop(key) :][:1]
            address = self._messages.ctypes.data
            self._kept = self._library.give_back(
                self._library.api, address, self._kept, row.ctypes.data
            )
            row["partition"] = _NOWHERE
            row["next"] = row["end"]
        if not self._numbers:
            self._drop()

    def _left(self) -> int:
        """How many offsets are still to be covered."""
        return int((self._ranges["end"] - self._ranges["next"]).sum())

    def _take(self, max_records: int, wait_ms: int = _WAIT_MS) -> int:
        """Take messages from the client, behind those that are kept. Returns how many there are in
        all."""
        at = self._messages.ctypes.data + 8 * self._kept
        taken = self._library.consume_batch_queue(self._queue, wait_ms, at, max_records)
        if taken < 0:
            raise KafkaException(KafkaError(KafkaError._FAIL, "no messages could be taken"))
        return self._kept + taken if taken else 0

    def _columns(self, count: int) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        """What the first messages hold of the ranges. They are given back except for records behind
        the ranges' ends."""
        done, self._kept = 0, count
        while done < self._kept:
            messages = self._messages.ctypes.data + 8 * done
            taken, room, places, error = self._surveyed(messages, self._kept - done)
            lib, ranges = self._library, self._ranges
            cursors = np.empty(len(ranges) * CURSOR_BYTES, np.uint8)
            given = (lib.api, messages, taken, places.ctypes.data, ranges.ctypes.data, len(ranges))
            left = lib.fill(*given, cursors.ctypes.data, C.addressof(room.columns), 1)
            rest = self._messages[done + taken : self._kept].copy()
            done += left
            self._kept = done + len(rest)
            self._messages[done : self._kept] = rest
            self._raise_for(error)
            if room.rows:
                self._most = max(1, min(_MESSAGES, _BYTES * room.rows // max(1, room.size)))
                batch, first = room.batch(), 0
                for key, rows in self._counts():
                    yield key, batch.slice(first, rows)
                    first += rows

    def _surveyed(self, messages: int, count: int) -> tuple[int, ColumnBuffers, np.ndarray, int]:
        """How many of some messages are copied at once, room for them, where they belong, and an
        error that is about no partition. Not all, where that would be more than Arrow's columns
        hold."""
        lib, before = self._library, self._ranges.copy()
        while True:
            for name in COUNTED:
                self._ranges[name] = 0
            places, ranges = np.empty(count, np.int32), self._ranges
            error = lib.survey(
                lib.api, messages, count, ranges.ctypes.data, len(ranges), places.ctypes.data
            )
            try:
                return count, ColumnBuffers(ranges), places, error
            except OverflowError:
                if count == 1:
                    raise
            self._ranges[:] = before
            count //= 2

    def _counts(self) -> list[tuple[Partition, int]]:
        """How many records of each partition were copied, in the order of the ranges."""
        counts = [
            (key, int(self._ranges[number]["count"])) for key, number in self._numbers.items()
        ]
        return [(key, rows) for key, rows in counts if rows]

    def _raise_for(self, general: int) -> None:
        for key, number in self._numbers.items():
            code = int(self._ranges[number]["error"])
            if code:
                error, offset = KafkaError(code), int(self._ranges[number]["next"])
                self._forget([key])
                text = f"{key[0]}-{key[1]} cannot be read from offset {offset}: {error.str()}"
                raise KafkaException(KafkaError(code, text))
        if general:
            self._note(0, general, KafkaError(general).str().encode(), 0)

    def _finish(self) -> None:
        """Fetch no more of ranges that are over, unless the next ones may follow; keep few records
        for those."""
        over = [
            key
            for key, number in self._numbers.items()
            if self._ranges[number]["next"] >= self._ranges[number]["end"]
        ]
        if over and (not self._keep or self._kept > KEPT):
            self._forget(over)

    def _drop(self) -> None:
        """Let go of all where nothing is read any more: librdkafka keeps what it fetched ahead
        until it is asked for more."""
        while (taken := self._take(_MESSAGES, 0)) > 0:
            self._kept = taken
            self._release()
        self._names.clear()
        self._ranges = np.zeros(0, RANGE)

    def _release(self) -> None:
        self._kept = self._library.give_back(
            self._library.api, self._messages.ctypes.data, self._kept, None
        )

    def _silent(self) -> KafkaException:
        open_ = [
            f"{key[0]}-{key[1]}"
            for key, number in self._numbers.items()
            if self._ranges[number]["next"] < self._ranges[number]["end"]
        ]
        # The answer says whether it is about these partitions: the leader of some may be away while
        # others answer.
        if code := self._library.look_up(self._handle, None, _ANY_BROKER_MS):
            return ClusterSilent(self._complaints.last or KafkaError(code))
        return no_record(open_, self._patience, self._complaints.last)
