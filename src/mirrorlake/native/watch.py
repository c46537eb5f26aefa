"""Notices records behind the ends of logs, by a fetch that waits at the brokers: quiet partitions
need no queries (docs/not_obvious.md). As each fetch names all partitions (KIP-227), a broker is
asked again only when what was reported before was taken, or after WAIT_SECONDS."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mirrorlake.native.library import library
from mirrorlake.native.queued_consumer import QueuedConsumer
from mirrorlake.native.range_table import Partition
from mirrorlake.native.structures import Message

#: How long a broker waits for a record until it answers that there is none, seconds. A newly
#: watched partition is in the next fetch.
WAIT_SECONDS = 5.0
_SETTINGS: Mapping[str, str | int | bool] = {
    # with one librdkafka looks for its coordinator, which needs a right on the group
    "group.id": "",
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.partition.eof": False,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": int(WAIT_SECONDS * 1_000),
    "fetch.min.bytes": 1,
    # One record is enough. A broker returns at least one whole batch, and leaves out others that
    # are larger than a partition's share (KIP-74): so the first batches of most fit into it.
    "fetch.message.max.bytes": 32 << 10,
    "fetch.max.bytes": 4 << 20,
    # for producers, but librdkafka rejects a smaller `fetch.max.bytes`
    "message.max.bytes": 1_000_000,
    "receive.message.max.bytes": 2_000_000_000,
    # nothing more is fetched until the reported records are taken
    "queued.min.messages": 1,
    "fetch.queue.backoff.ms": 100,
}
#: Messages taken at a time.
_MESSAGES = 1_000


class LogWatch:
    """Watches partitions of one cluster, as a consumer without a group. For one thread; to be
    closed. If many begin together, each answer reports at least one. Raises NativeUnavailable."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._library = library()
        self._consumer = QueuedConsumer({**settings, **_SETTINGS})
        self._messages = np.zeros(_MESSAGES, np.uint64)

    def watch(self, ends: Mapping[Partition, int]) -> None:
        """Watch partitions for committed records at an offset or behind it; restarts those that are
        watched already. Raises KafkaException."""
        self._consumer.stop(ends)
        self._consumer.start(ends)

    def moved(self) -> frozenset[Partition]:
        """The partitions with a record, or an error of brokers, so far; no longer watched."""
        moved: set[Partition] = set()
        while taken := self._consumer.take(self._messages.ctypes.data, _MESSAGES, 0):
            for address in self._messages[:taken].tolist():
                message = Message.from_address(address)
                if message.rkt:
                    name = self._library.topic_name(message.rkt)
                    moved.add((name.decode(), message.partition))
            self._library.give_back(self._library.api, self._messages.ctypes.data, taken, None)
            self._consumer.stop(moved)
        return frozenset(moved)

    def close(self) -> None:
        """Release the client."""
        if self._consumer.handle is not None:
            self._consumer.stop(self._consumer.started)
            self.moved()
            self._consumer.close()
