"""What a cluster says of topics, without an object for each of their partitions and replicas.

confluent-kafka makes some ten objects a partition of each answer, while it holds the interpreter's
lock: of 2,000 partitions that is 50 ms of CPU, of which a topic's id and our rights are none.
"""

import ctypes as C
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from mirrorlake.native.library import PRODUCER, Library, library

#: `RD_KAFKA_ADMIN_OP_DESCRIBETOPICS` in rdkafka.h.
_DESCRIBE_TOPICS = 19
#: How much longer than a broker has to answer librdkafka's own word is waited for, ms.
_GRACE_MS = 5_000


class Description(NamedTuple):
    """A topic: Kafka's id of it, the numbers of its partitions, and what we may do; None where that
    was not asked for, or the cluster does not say."""

    topic_id: str
    partitions: range
    authorized_operations: list[AclOperation] | None


class TopicDescriber:
    """A client of one cluster; any thread may ask. It ends with the object. Raises
    NativeUnavailable, and KafkaException for settings that are refused."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._library = library()
        self._handle = self._library.client(PRODUCER, dict(settings))
        # Not at the end of the process, which would wait for brokers that do not answer.
        weakref.finalize(self, self._library.destroy, self._handle).atexit = False

    def describe(
        self, topics: Sequence[str], rights: bool, seconds: float
    ) -> dict[str, Description | KafkaError]:
        """Ask about topics, in one request: what each is, or the error of it. Raises KafkaException
        when no broker answers within so many seconds."""
        lib, milliseconds = self._library, int(seconds * 1_000)
        queue = lib.queue_new(self._handle)
        options = lib.AdminOptions_new(self._handle, _DESCRIBE_TOPICS)
        names = (C.c_char_p * len(topics))(*(name.encode() for name in topics))
        wanted = lib.TopicCollection_of_topic_names(names, len(topics))
        try:
            text = C.create_string_buffer(512)
            lib.AdminOptions_set_request_timeout(options, milliseconds, text, len(text))
            lib.check(lib.AdminOptions_set_include_authorized_operations(options, int(rights)))
            lib.DescribeTopics(self._handle, wanted, options, queue)
            return self._answer(lib.queue_poll(queue, milliseconds + _GRACE_MS))
        finally:
            lib.TopicCollection_destroy(wanted)
            lib.AdminOptions_destroy(options)
            lib.queue_destroy(queue)

    def _answer(self, event: int | None) -> dict[str, Description | KafkaError]:
        lib = self._library
        if not event:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        try:
            if code := lib.event_error(event):
                text = lib.event_error_string(event).decode(errors="replace")
                raise KafkaException(KafkaError(code, text))
            count = C.c_size_t()
            result = lib.event_DescribeTopics_result(event)
            topics = lib.DescribeTopics_result_topics(result, C.byref(count))
            addresses = (C.c_size_t * count.value).from_address(topics) if count.value else ()
            return {
                lib.TopicDescription_name(topic).decode(): _description(lib, topic)
                for topic in addresses
            }
        finally:
            lib.event_destroy(event)


def _description(lib: Library, topic: int) -> Description | KafkaError:
    error = lib.TopicDescription_error(topic)
    if code := lib.error_code(error):
        return KafkaError(code, lib.error_string(error).decode(errors="replace"))
    partitions, operations = C.c_size_t(), C.c_size_t()
    lib.TopicDescription_partitions(topic, C.byref(partitions))
    values = lib.TopicDescription_authorized_operations(topic, C.byref(operations))
    return Description(
        lib.Uuid_base64str(lib.TopicDescription_topic_id(topic)).decode(),
        range(partitions.value),
        [AclOperation(each) for each in (C.c_int * operations.value).from_address(values)]
        if values
        else None,
    )
