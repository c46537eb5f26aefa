"""A librdkafka consumer without a group, whose partitions all feed one queue."""

import ctypes as C
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from mirrorlake.native.library import CONSUMER, library
from mirrorlake.native.range_table import Partition

logger = logging.getLogger(__name__)

#: librdkafka's error callback: client, code, text, opaque.
_ON_ERROR = C.CFUNCTYPE(None, C.c_void_p, C.c_int, C.c_char_p, C.c_void_p)
#: How long to wait for an answer about the leaders of partitions, ms.
_LOOK_UP_MS = 1_000


class QueuedConsumer:
    """For one thread; to be closed. `complained` gets its errors while messages are taken.
    `started` are the fetched partitions; `handle` and `queue` are librdkafka's, the handle None
    once it is closed. Raises NativeUnavailable, and KafkaException for refused settings."""

    def __init__(
        self,
        settings: dict[str, Any],
        complained: Callable[[KafkaError], object] = lambda _error: None,
    ) -> None:
        self._library = library()
        self._complained = complained
        self._on_error = _ON_ERROR(self._heard)
        self.handle: int | None = self._library.client(CONSUMER, settings, self._prepare)
        self.queue = self._library.queue_new(self.handle)
        main = self._library.queue_get_main(self.handle)
        self._library.queue_forward(main, self.queue)
        self._library.queue_destroy(main)
        self._topics: dict[str, int] = {}
        self.started: set[Partition] = set()

    def start(self, offsets: Mapping[Partition, int]) -> None:
        """Start fetching partitions from these offsets on. Raises KafkaException."""
        lib, known = self._library, len(self._topics)
        for (topic, partition), offset in offsets.items():
            if topic not in self._topics:
                self._topics[topic] = lib.topic_new(self.handle, topic.encode(), None)
            if lib.consume_start_queue(self._topics[topic], partition, offset, self.queue) != 0:
                raise KafkaException(KafkaError(lib.last_error()))
            self.started.add((topic, partition))
        if len(self._topics) > known:
            # Query the leaders of new topics: librdkafka looks for such topics only once a second.
            # If no broker answers, it goes on by itself.
            self.look_up(_LOOK_UP_MS)

    def stop(self, keys: Iterable[Partition]) -> None:
        """Stop fetching those of these partitions that are fetched."""
        for topic, partition in self.started.intersection(keys):
            self._library.consume_stop(self._topics[topic], partition)
            self.started.discard((topic, partition))

    def take(self, addresses: int, most: int, wait_ms: int) -> int:
        """Take up to `most` messages into `addresses`, return how many; wait for the first."""
        taken = int(self._library.consume_batch_queue(self.queue, wait_ms, addresses, most))
        if taken < 0:
            raise KafkaException(KafkaError(KafkaError._FAIL, "no messages could be taken"))
        return taken

    def look_up(self, wait_ms: int) -> int:
        """Query the leaders of the known topics' partitions; return the error's code, or 0."""
        return int(self._library.look_up(self.handle, None, wait_ms))

    def note(self, error: KafkaError) -> None:
        """Report an error of the client."""
        logger.info("a source cluster says: %s", error.str())
        self._complained(error)

    def close(self) -> None:
        """Release the client, whose messages were given back."""
        if self.handle is not None:
            self.stop(self.started)
            for topic in self._topics.values():
                self._library.topic_destroy(topic)
            self._library.queue_destroy(self.queue)
            self._library.destroy(self.handle)
            self.handle = None

    def _prepare(self, conf: int) -> None:
        self._library.conf_set_error_cb(conf, C.cast(self._on_error, C.c_void_p))

    def _heard(self, _client: int, code: int, text: bytes, _opaque: int) -> None:
        """Called by librdkafka."""
        self.note(KafkaError(code, text.decode(errors="replace")))
