"""Hears of records behind the ends of logs, by a fetch that waits at the brokers: what is quiet
needs no question.

librdkafka names all partitions in each fetch, since it has no sessions (KIP-227), so a broker is
asked again only when what was reported before was taken, or after WAIT_SECONDS.
"""

import ctypes as C
import logging
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.native.library import CONSUMER, Message, library
from mirrorlake.native.range_table import Partition

logger = logging.getLogger(__name__)

#: How long a broker waits for a record until it answers that there is none, seconds. A partition
#: that is watched from now on is in the next fetch.
WAIT_SECONDS = 5.0
_SETTINGS: Mapping[str, str | int | bool] = {
    # with one librdkafka looks for its coordinator, which takes a right on the group
    "group.id": "",
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.partition.eof": False,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": int(WAIT_SECONDS * 1_000),
    "fetch.min.bytes": 1,
    # One record is enough. A broker gives one whole batch at least, and leaves out others that are
    # larger than a partition's share (KIP-74): so the first batches of most fit into it.
    "fetch.message.max.bytes": 32 << 10,
    "fetch.max.bytes": 4 << 20,
    # is for producers, but librdkafka lets no `fetch.max.bytes` be less
    "message.max.bytes": 1_000_000,
    "receive.message.max.bytes": 2_000_000_000,
    # nothing more is fetched until what was reported is taken
    "queued.min.messages": 1,
    "fetch.queue.backoff.ms": 100,
}
#: Messages that are taken at a time, and how long an answer to who leads partitions is waited for,
#: ms.
_MESSAGES, _LOOK_UP_MS = 1_000, 1_000
_ON_ERROR = C.CFUNCTYPE(None, C.c_void_p, C.c_int, C.c_char_p, C.c_void_p)


class LogWatch:
    """Watches partitions of one cluster, as a consumer of no group. For one thread; to be closed.
    Where many begin together, with batches that do not fit into one answer, it reports one at
    least with each. Raises NativeUnavailable."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._library = library()
        self._on_error = _ON_ERROR(self._note)
        self._handle: int | None = self._library.client(
            CONSUMER, {**settings, **_SETTINGS}, self._prepare
        )
        self._queue = self._library.queue_new(self._handle)
        main = self._library.queue_get_main(self._handle)
        self._library.queue_forward(main, self._queue)
        self._library.queue_destroy(main)
        self._topics: dict[str, int] = {}
        self._watched: set[Partition] = set()
        self._messages = np.zeros(_MESSAGES, np.uint64)

    def watch(self, ends: Mapping[Partition, int]) -> None:
        """Watch partitions for committed records at an offset or behind it; one that is watched
        already from there on. Raises KafkaException."""
        lib, known = self._library, len(self._topics)
        self.leave(self._watched.intersection(ends))
        for (topic, partition), end in ends.items():
            if topic not in self._topics:
                self._topics[topic] = lib.topic_new(self._handle, topic.encode(), None)
            if lib.consume_start_queue(self._topics[topic], partition, end, self._queue) != 0:
                raise KafkaException(KafkaError(lib.last_error()))
            self._watched.add((topic, partition))
        if len(self._topics) > known:
            # Ask who leads the partitions of new topics: librdkafka looks for such topics once a
            # second.
            lib.look_up(self._handle, None, _LOOK_UP_MS)

    def leave(self, keys: Collection[Partition]) -> None:
        """Watch some partitions no more."""
        for topic, partition in keys:
            self._library.consume_stop(self._topics[topic], partition)
        self._watched.difference_update(keys)

    def moved(self) -> frozenset[Partition]:
        """The partitions of which a record has come, or of which the brokers say that they cannot
        be read, as far as that is known now; they are watched no more."""
        moved: set[Partition] = set()
        while taken := self._take():
            for address in self._messages[:taken].tolist():
                message = Message.from_address(address)
                if message.rkt:
                    name = self._library.topic_name(message.rkt)
                    moved.add((name.decode(), message.partition))
            self._library.give_back(self._library.api, self._messages.ctypes.data, taken, None)
            self.leave(moved & self._watched)
        return frozenset(moved)

    def close(self) -> None:
        """Let go of the client."""
        if self._handle is not None:
            self.leave(list(self._watched))
            self.moved()
            for topic in self._topics.values():
                self._library.topic_destroy(topic)
            self._library.queue_destroy(self._queue)
            self._library.destroy(self._handle)
            self._handle = None

    def _take(self) -> int:
        """Take messages without waiting; returns how many."""
        at = self._messages.ctypes.data
        taken = int(self._library.consume_batch_queue(self._queue, 0, at, _MESSAGES))
        if taken < 0:
            raise KafkaException(KafkaError(KafkaError._FAIL, "no messages could be taken"))
        return taken

    def _prepare(self, conf: int) -> None:
        self._library.conf_set_error_cb(conf, C.cast(self._on_error, C.c_void_p))

    def _note(self, _client: int, code: int, text: bytes, _opaque: int) -> None:
        """Note what the client complains of; called by librdkafka while messages are taken."""
        logger.info(
            "a source cluster says: %s", KafkaError(code, text.decode(errors="replace")).str()
        )
