"""A producer over librdkafka's C interface, which takes Arrow rows and returns the offset of each.

Its methods have the names, and raise the errors, of `confluent_kafka.Producer` where they do the
same. The rows that librdkafka reads, and the slots that it writes to, are kept until it no longer
needs them: until the last acknowledgement was served, or the client is destroyed. It is destroyed
in its own thread once nothing, as no hanging call, refers to the producer.
"""

import _thread
import ctypes as C
import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, ThrottleEvent

from mirrorlake.native.library import PENDING, PRODUCER, REFUSED, library
from mirrorlake.native.outgoing import Outgoing

_P, _S = C.c_void_p, C.c_char_p
_LOG = C.CFUNCTYPE(None, _P, C.c_int, _S, _S)
_THROTTLE = C.CFUNCTYPE(None, _P, _S, C.c_int32, C.c_int, _P)
#: Python's log levels for syslog's, which librdkafka uses.
_LEVELS = (logging.CRITICAL,) * 3 + (
    logging.ERROR,
    logging.WARNING,
    logging.INFO,
    logging.INFO,
    logging.DEBUG,
)
_PURGE_ALL = 1 | 2  # queued and in flight


class Producer:
    """A producer; not thread-safe. `throttle` gets the throttling reports of brokers, and `logger`
    gets librdkafka's lines, both within `poll` and calls that poll. Raises KafkaException for
    settings that are refused, NativeUnavailable if there is no library."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        throttle: Callable[[ThrottleEvent], None] | None = None,
        logger: logging.Logger | None = None,
    ) -> None:
        self._lib = library()
        self._client = _Client(settings, throttle, logger)
        # No thread can be started when the interpreter ends: the client ends with the process.
        weakref.finalize(self, self._client.end).atexit = False

    def init_transactions(self, seconds: float) -> None:
        """Fence the earlier producer with this `transactional.id`, and end what it left open."""
        self._lib.check(self._lib.init_transactions(self._client.rk, _ms(seconds)))

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._lib.check(self._lib.begin_transaction(self._client.rk))

    def send_offsets_to_transaction(
        self, offsets: Mapping[tuple[str, int], tuple[int, str]], group: str, seconds: float
    ) -> None:
        """Commit a group's (offset, metadata) of each (topic, partition) with the transaction."""
        lib, places = self._lib, self._lib.annotated(dict(offsets))
        metadata = lib.consumer_group_metadata_new(group.encode())
        try:
            given = (self._client.rk, places, metadata, _ms(seconds))
            lib.check(lib.send_offsets_to_transaction(*given))
        finally:
            lib.consumer_group_metadata_destroy(metadata)
            lib.topic_partition_list_destroy(places)

    def commit_transaction(self, seconds: float) -> None:
        """Commit the transaction."""
        self._lib.check(self._lib.commit_transaction(self._client.rk, _ms(seconds)))
        self._release()

    def abort_transaction(self, seconds: float) -> None:
        """Abort the transaction."""
        self._lib.check(self._lib.abort_transaction(self._client.rk, _ms(seconds)))
        self._release()

    def failure(self) -> KafkaError | None:
        """See `failure_of`."""
        return failure_of(self)

    def look_closer(self) -> None:
        """Do nothing: the outcome of each row is known."""

    def shipment(
        self,
        topic: str,
        partition: int,
        rows: pa.RecordBatch,
        added: tuple[str, bytes] | None = None,
        removed: str | None = None,
    ) -> "Shipment":
        """Prepare rows of one partition for sending, in the form of native/outgoing.py."""
        (shipment,) = self.shipments([(topic, partition)], [rows.num_rows], rows, added, removed)
        return shipment

    def shipments(
        self,
        places: Sequence[tuple[str, int]],
        counts: Sequence[int],
        rows: pa.RecordBatch,
        added: tuple[str, bytes] | None = None,
        removed: str | None = None,
    ) -> list["Shipment"]:
        """Prepare rows of several partitions, `counts` of each in a row, for sending."""
        outgoing, ends = Outgoing(rows, added, removed), accumulate(counts)
        return [
            Shipment(self, *place, outgoing, range(end - count, end))
            for place, count, end in zip(places, counts, ends, strict=True)
        ]

    def send(
        self, topic: str, partition: int, outgoing: Outgoing, start: int, end: int
    ) -> tuple[int, KafkaException | None]:
        """Send rows `start` to `end` (exclusive). Returns the first refused and error, or `end`."""
        kept = self._client.kept
        if not kept or kept[-1] is not outgoing:
            kept.append(outgoing)
        outgoing.rows.count = end
        error, slots = C.c_void_p(), outgoing.address
        place = (self._client.rk, self._client.topic(topic), partition)
        taken = self._lib.send(
            self._lib.api, *place, C.byref(outgoing.rows), start, slots, C.byref(error)
        )
        try:
            self._lib.check(error.value)
        except KafkaException as refused:
            return taken, refused
        return taken, None

    def flush(self, seconds: float) -> int:
        """Wait until all rows are acknowledged; returns how many are not when the time is over."""
        self._lib.flush(self._client.rk, _ms(seconds))
        return self._release()

    def poll(self, seconds: float) -> int:
        """Serve acknowledgements and the like; returns how many events were served."""
        return int(self._lib.poll(self._client.rk, _ms(seconds)))

    def purge(self) -> None:
        """Give up all rows that are not acknowledged; the next poll reports them as refused."""
        self._lib.purge(self._client.rk, _PURGE_ALL)

    def refresh(self, topic: str | None, seconds: float) -> None:
        """Query metadata of a topic, or (None) of known ones. Raises KafkaException."""
        known = None if topic is None else self._client.topic(topic)
        code = self._lib.look_up(self._client.rk, known, _ms(seconds))
        if code:
            raise KafkaException(KafkaError(code))

    def __len__(self) -> int:
        return int(self._lib.outq_len(self._client.rk))

    def _release(self) -> int:
        left = len(self)
        if not left:  # all acknowledgements were served, so librdkafka refers to no row
            self._client.kept.clear()
        return left


def failure_of(producer: Any) -> KafkaError | None:
    """Why the open transaction of a producer can only be aborted; None if it can go on. librdkafka
    keeps the first such error and returns it to an attempt to begin another transaction, which
    changes nothing (rdkafka_txnmgr.c)."""
    try:
        producer.begin_transaction()
    except KafkaException as refused:
        error: KafkaError = refused.args[0]
        return error if error.txn_requires_abort() or error.fatal() else None
    return None


class Shipment:
    """Rows on their way to a partition: those of `outgoing` that `rows` names."""

    #: Every refused row is known.
    exact = True

    def __init__(
        self, producer: Producer, topic: str, partition: int, outgoing: Outgoing, rows: range
    ) -> None:
        self._producer = producer
        self._place = (topic, partition)
        # Only this is kept for librdkafka; it does not refer to the producer.
        self._outgoing = outgoing
        self._rows = rows
        self._next = rows.start

    @property
    def taken(self) -> int:
        """How many rows librdkafka has accepted."""
        return self._next - self._rows.start

    def send(self) -> None:
        """See `produce.record_producer.Shipment`."""
        self._next, refused = self._producer.send(
            *self._place, self._outgoing, self._next, self._rows.stop
        )
        if refused is not None and refused.args[0].code() == KafkaError._QUEUE_FULL:
            raise BufferError(str(refused.args[0])) from refused
        if refused is not None:
            raise refused

    def refused(self) -> np.ndarray | None:
        """See `produce.record_producer.Shipment`."""
        slots = self.offsets()
        # A row acknowledged without an offset, as a repeated one may be, was not refused.
        refused = (slots < REFUSED // 2) & (slots != PENDING)
        return np.where(refused, slots - REFUSED, 0) if bool(refused.any()) else None

    def offsets(self) -> np.ndarray:
        """The offset of each row; negative for one that is not acknowledged, or was refused."""
        return self._outgoing.slots[self._rows.start : self._rows.stop]


class _Client:
    """librdkafka's handle and all that it refers to. Nothing frees it before `end` is done, not
    even the end of the interpreter: librdkafka's threads run until then."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        throttle: Callable[[ThrottleEvent], None] | None,
        logger: logging.Logger | None,
    ) -> None:
        self._lib = library()
        self._topics: dict[str, int] = {}
        #: Rows that were sent and may not be acknowledged yet.
        self.kept: list[Outgoing] = []
        self._callbacks: list[Any] = []
        # Lines are queued until the polling thread takes them: no other thread calls Python.
        own = {} if logger is None else {"log.queue": True}
        self.rk = self._lib.client(
            PRODUCER, {**settings, **own}, lambda conf: self._prepare(conf, throttle, logger)
        )
        C.pythonapi.Py_IncRef(C.py_object(self))
        if logger is not None:
            self._lib.set_log_queue(self.rk, None)

    def _prepare(
        self,
        conf: int,
        throttle: Callable[[ThrottleEvent], None] | None,
        logger: logging.Logger | None,
    ) -> None:
        self._lib.conf_set_dr_msg_cb(conf, self._lib.delivered)
        if throttle is not None:
            self._lib.conf_set_throttle_cb(conf, self._pointer(_THROTTLE(_throttled(throttle))))
        if logger is not None:
            self._lib.conf_set_log_cb(conf, self._pointer(_LOG(_logged(logger))))

    def _pointer(self, callback: Any) -> int | None:
        self._callbacks.append(callback)
        return C.cast(callback, C.c_void_p).value

    def topic(self, name: str) -> int:
        """librdkafka's handle of a topic. Raises KafkaException for an invalid name."""
        if name not in self._topics:
            handle = self._lib.topic_new(self.rk, name.encode(), None)
            if not handle:
                raise KafkaException(KafkaError(self._lib.last_error()))
            self._topics[name] = handle
        return self._topics[name]

    def end(self) -> None:
        """Destroy it, in a thread: it waits for librdkafka's, which may be resolving a name."""
        # Not `threading`: the thread in which the garbage collector calls this may hold its locks.
        _thread.start_new_thread(self._destroy, ())

    def _destroy(self) -> None:
        self._lib.set_log_level(self.rk, 0)
        self._lib.purge(self.rk, _PURGE_ALL)
        for handle in self._topics.values():
            self._lib.topic_destroy(handle)
        self._lib.destroy(self.rk)
        C.pythonapi.Py_DecRef(C.py_object(self))


def _throttled(tell: Callable[[ThrottleEvent], None]) -> Callable[..., None]:
    def throttled(_rk: int, broker: bytes, number: int, milliseconds: int, _opaque: int) -> None:
        tell(ThrottleEvent(broker.decode(errors="replace"), number, milliseconds / 1_000))

    return throttled


def _logged(logger: logging.Logger) -> Callable[..., None]:
    def logged(_rk: int, level: int, facility: bytes, text: bytes) -> None:
        named, line = (part.decode(errors="replace") for part in (facility, text))
        logger.log(_LEVELS[level], "%s %s", named, line)

    return logged


def _ms(seconds: float) -> int:
    return int(seconds * 1_000)
