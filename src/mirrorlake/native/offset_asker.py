"""Queries leaders for offsets; answers are lists, without an object for each partition."""

import ctypes as C
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.native.library import Library
from mirrorlake.native.structures import Asked

#: `RD_KAFKA_ADMIN_OP_LISTOFFSETS` in rdkafka.h.
_LIST_OFFSETS = 21
_UNANSWERED = KafkaError.UNKNOWN
_encoded = lru_cache(16_384)(str.encode)


class OffsetAnswers(NamedTuple):
    """The answers about partitions (topic, number), in their order: offsets, timestamps and
    leaders' epochs, below 0 for none, and error codes, 0 for none."""

    keys: Sequence[tuple[str, int]]
    offsets: list[int]
    timestamps: list[int]
    epochs: list[int]
    errors: list[int]


class _Question:
    """One question while it is open, with the memory for librdkafka's answer."""

    def __init__(self, keys: Sequence[tuple[str, int]]) -> None:
        self.keys, self.future = keys, Future[OffsetAnswers]()
        self.future.set_running_or_notify_cancel()
        self._names = (C.c_char_p * len(keys))(*(_encoded(topic) for topic, _ in keys))
        self._numbers = np.array([number for _, number in keys], np.int32)
        self._answers = np.full((len(keys), 4), _UNANSWERED, np.int64)
        self.asked = Asked(
            C.addressof(self._names),
            self._numbers.ctypes.data,
            len(keys),
            self._answers.ctypes.data,
        )

    def answer(self, lib: Library, event: int) -> OffsetAnswers:
        """Read the answer. Raises KafkaException where the question failed as a whole."""
        if code := lib.event_error(event):
            words = lib.event_error_string(event).decode(errors="replace")
            raise KafkaException(KafkaError(code, words))
        answers = C.c_size_t()
        result = lib.event_ListOffsets_result(event)
        infos = lib.ListOffsets_result_infos(result, C.byref(answers))
        slots = np.full(1 << (2 * len(self.keys)).bit_length(), -1, np.int32)
        lib.take_offsets(
            lib.offset_api,
            infos,
            answers.value,
            C.byref(self.asked),
            slots.ctypes.data,
            len(slots) - 1,
        )
        return OffsetAnswers(self.keys, *self._answers.T.tolist())


class OffsetAsker:
    """Queries by one client, with a thread that takes the answers. Thread-safe."""

    def __init__(self, lib: Library, handle: int) -> None:
        self._lib, self._handle = lib, handle
        self._queue = lib.queue_new(handle)
        self._open: dict[int, _Question] = {}
        self._numbers = count(1)
        self._over = threading.Event()
        self._ending = threading.Lock()
        self.thread = threading.Thread(target=self._serve, name="offsets", daemon=True)
        self.thread.start()

    def ask(
        self, keys: Sequence[tuple[str, int]], what: int, level: int, seconds: float
    ) -> "Future[OffsetAnswers]":
        """Send a question without waiting: `what` is librdkafka's OffsetSpec, `level` the
        isolation; brokers have so many seconds to answer."""
        lib, question, number = self._lib, _Question(keys), next(self._numbers)
        wanted = lib.topic_partition_list_new(len(keys))
        options = lib.AdminOptions_new(self._handle, _LIST_OFFSETS)
        try:
            lib.ask_offsets(lib.offset_api, wanted, C.byref(question.asked), what)
            text = C.create_string_buffer(512)
            lib.AdminOptions_set_request_timeout(options, int(seconds * 1_000), text, len(text))
            lib.check(lib.AdminOptions_set_isolation_level(options, level))
            lib.AdminOptions_set_opaque(options, number)
            self._open[number] = question
            if self._over.is_set():
                self._give_up(number)
            else:
                lib.ListOffsets(self._handle, wanted, options, self._queue)
        finally:
            lib.topic_partition_list_destroy(wanted)
            lib.AdminOptions_destroy(options)
        return question.future

    @property
    def over(self) -> bool:
        """Whether answers are no longer taken."""
        return self._over.is_set()

    def end(self) -> None:
        """End the thread, and the client with it; open questions fail."""
        with self._ending:  # an answer of now wakes the thread, too, which gives the queue back
            self._over.set()
            self._lib.queue_yield(self._queue)

    def _serve(self) -> None:
        lib = self._lib
        try:
            while not self._over.is_set():
                event = lib.queue_poll(self._queue, -1)
                if event:
                    self._take(event)
                    lib.event_destroy(event)
        finally:  # however it ended: no caller may wait for answers that no thread takes
            self._over.set()
            for number in list(self._open):
                self._give_up(number)
        # Not after a failure: the client still serves other queries.
        with self._ending:
            lib.queue_destroy(self._queue)
        lib.destroy(self._handle)

    def _give_up(self, number: int) -> None:
        question = self._open.pop(number, None)
        if question is not None:
            question.future.set_exception(KafkaException(KafkaError(KafkaError._DESTROY)))

    def _take(self, event: int) -> None:
        question = self._open.pop(self._lib.event_opaque(event))
        try:
            answer = question.answer(self._lib, event)
        except Exception as error:  # noqa: BLE001 - who asked hears of it, and others go on
            question.future.set_exception(error)
        else:
            question.future.set_result(answer)


def answers_by(results: Any) -> OffsetAnswers:
    """The result of confluent-kafka's future of an offset query, as lists."""
    values = results.values()
    return OffsetAnswers(
        [(key.topic, key.partition) for key in results],
        [-1 if isinstance(each, KafkaError) else each.offset for each in values],
        [-1 if isinstance(each, KafkaError) else each.timestamp for each in values],
        [-1 if isinstance(each, KafkaError) else _epoch(each) for each in values],
        [each.code() if isinstance(each, KafkaError) else 0 for each in values],
    )


def _epoch(answer: Any) -> int:
    return -1 if answer.leader_epoch is None else int(answer.leader_epoch)
