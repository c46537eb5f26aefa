"""What a cluster reports of topics, without an object for each of their partitions, replicas and
configs: confluent-kafka makes some ten a partition of each answer, and some ninety a topic for
configs, while it holds the interpreter's lock: for 2,000 partitions 50 ms of CPU, although a
topic's id and our rights need none of them."""

import ctypes as C
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from mirrorlake.native.layouts import Layout, layout_of
from mirrorlake.native.library import PRODUCER, library
from mirrorlake.native.offset_asker import OffsetAnswers, OffsetAsker

#: `RD_KAFKA_ADMIN_OP_*` in rdkafka.h.
_DESCRIBE_CONFIGS, _DESCRIBE_TOPICS = 5, 19
#: `RD_KAFKA_RESOURCE_TOPIC` there.
_TOPIC = 2
#: How much longer than a broker's time librdkafka's own answer is waited for, ms.
_GRACE_MS = 5_000
#: The initial buffer size, bytes; the default configs of a topic take some 2,500.
_ROOM = 16 << 10
#: What `config_bytes` of records.c adds to each of its numbers, and the flags of a config; a fixed
#: one is read-only or sensitive.
TEXT, NO_VALUE, IS_DEFAULT, IS_FIXED = 64, 1, 2, 4 | 8
Answers = TypeVar("Answers")


class Description(NamedTuple):
    """A topic: its Kafka id, its partition numbers, and our rights; None if they were not
    requested, or the cluster does not report them."""

    topic_id: str
    partitions: range
    authorized_operations: list[AclOperation] | None


class Describer:
    """A cluster's client, for any thread. It ends with the object. Raises NativeUnavailable, and
    KafkaException for settings that are refused; its queries also if no broker answers in time."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._library = library()
        # errors of the cluster are reported by the client that is used beside it
        self._handle = self._library.client(PRODUCER, {**settings, "log_level": 0})
        self._offsets = OffsetAsker(self._library, self._handle)
        self._last_content: tuple[tuple[bytes, str], Layout] | None = None
        # Not when the process ends, which would wait for silent brokers.
        weakref.finalize(self, self._offsets.end).atexit = False

    def describe(
        self, topics: Sequence[str], rights: bool, seconds: float
    ) -> dict[str, Description | KafkaError]:
        """Query topics, in one request: the description of each, or its error."""
        lib = self._library
        names = (C.c_char_p * len(topics))(*(name.encode() for name in topics))
        wanted = lib.TopicCollection_of_topic_names(names, len(topics))

        def ask(options: int, queue: int) -> None:
            lib.check(lib.AdminOptions_set_include_authorized_operations(options, int(rights)))
            lib.DescribeTopics(self._handle, wanted, options, queue)

        def read(event: int) -> dict[str, Description | KafkaError]:
            count = C.c_size_t()
            result = lib.event_DescribeTopics_result(event)
            addresses = _array(lib.DescribeTopics_result_topics(result, C.byref(count)), count)
            return {
                lib.TopicDescription_name(topic).decode(): self._description(topic)
                for topic in addresses
            }

        try:
            return self._asked(_DESCRIBE_TOPICS, seconds, ask, read)
        finally:
            lib.TopicCollection_destroy(wanted)

    def configs(self, topics: Sequence[str], seconds: float) -> dict[str, bytes | KafkaError]:
        """Query configs, in a request: each as `config_bytes` of records.c, or its error."""
        lib = self._library
        wanted = (C.c_void_p * len(topics))(
            *(lib.ConfigResource_new(_TOPIC, name.encode()) for name in topics)
        )

        def ask(options: int, queue: int) -> None:
            lib.DescribeConfigs(self._handle, wanted, len(topics), options, queue)

        def read(event: int) -> dict[str, bytes | KafkaError]:
            count, room = C.c_size_t(), C.create_string_buffer(_ROOM)
            addresses = _array(lib.DescribeConfigs_result_resources(event, C.byref(count)), count)
            answers = dict[str, bytes | KafkaError]()
            for topic in addresses:
                name = lib.ConfigResource_name(topic).decode()
                if code := lib.ConfigResource_error(topic):
                    text = (lib.ConfigResource_error_string(topic) or b"").decode(errors="replace")
                    answers[name] = KafkaError(code, text)
                    continue
                size = lib.config_bytes(lib.config_api, topic, room, len(room))
                if size > len(room):
                    room = C.create_string_buffer(size)
                    lib.config_bytes(lib.config_api, topic, room, size)
                answers[name] = C.string_at(room, size)
            return answers

        try:
            return self._asked(_DESCRIBE_CONFIGS, seconds, ask, read)
        finally:
            lib.ConfigResource_destroy_array(wanted, len(topics))

    @property
    def over(self) -> bool:
        """Whether the thread that takes answers has ended: none arrive any more."""
        return self._offsets.over

    def offsets(
        self, keys: Sequence[tuple[str, int]], what: int, level: int, seconds: float
    ) -> "Future[OffsetAnswers]":
        """Ask for offsets of partitions, as `OffsetAsker.ask`."""
        return self._offsets.ask(keys, what, level, seconds)

    def layout(self, seconds: float) -> Layout:
        """Query all topics' metadata, for queries of offsets; the same object until it changes."""
        lib, answer = self._library, C.c_void_p()
        milliseconds = int(seconds * 1_000)
        if code := lib.metadata(self._handle, 1, None, C.byref(answer), milliseconds):
            raise KafkaException(KafkaError(code))
        try:
            names_from, before = C.c_int64(), self._last_content
            room = C.create_string_buffer(len(before[0][0]) if before else _ROOM)
            size = lib.metadata_bytes(answer, room, len(room), C.byref(names_from))
            if size > len(room):
                room = C.create_string_buffer(size)
                lib.metadata_bytes(answer, room, size, C.byref(names_from))
        finally:
            lib.metadata_destroy(answer)
        content = C.string_at(room, size), self._cluster_id()
        if before is None or content != before[0]:
            before = self._last_content = (
                content,
                layout_of(content[0], names_from.value, content[1]),
            )
        return before[1]

    def _cluster_id(self) -> str:
        if not (address := self._library.clusterid(self._handle, 0)):
            return ""
        try:
            return C.string_at(address).decode()
        finally:
            self._library.mem_free(self._handle, address)

    def _asked(
        self,
        operation: int,
        seconds: float,
        ask: Callable[[int, int], object],
        read: Callable[[int], Answers],
    ) -> Answers:
        """The result of `read` for the answer to what `ask` sends, with options and to a queue."""
        lib, milliseconds = self._library, int(seconds * 1_000)
        queue, options = lib.queue_new(self._handle), lib.AdminOptions_new(self._handle, operation)
        event = None
        try:
            text = C.create_string_buffer(512)
            lib.AdminOptions_set_request_timeout(options, milliseconds, text, len(text))
            ask(options, queue)
            event = lib.queue_poll(queue, milliseconds + _GRACE_MS)
            if not event:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            if code := lib.event_error(event):
                words = lib.event_error_string(event).decode(errors="replace")
                raise KafkaException(KafkaError(code, words))
            return read(event)
        finally:
            if event:
                lib.event_destroy(event)
            lib.AdminOptions_destroy(options)
            lib.queue_destroy(queue)

    def _description(self, topic: int) -> Description | KafkaError:
        lib = self._library
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


def _array(address: int | None, count: C.c_size_t) -> list[int]:
    """The addresses that librdkafka's array has."""
    return [*(C.c_size_t * count.value).from_address(address)] if address and count.value else []
