"""librdkafka's functions by ctypes, and the compiled loops of `records.c` that call them.

ctypes releases the interpreter's lock in each call: callbacks and other threads run meanwhile.
"""

import ctypes as C
import platform
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import cimpl as _cimpl

from mirrorlake.native import structures

#: The oldest librdkafka with the interface that `records.c` declares.
OLDEST = 0x02_00_00_FF
#: The value of a slot until its record is acknowledged; a refused one's is REFUSED plus the code.
PENDING, REFUSED = -(2**62), -1_000_000
CONSUMER, PRODUCER = 1, 0

_P, _S, _I32, _I64, _SIZE = C.c_void_p, C.c_char_p, C.c_int32, C.c_int64, C.c_size_t
#: Functions of librdkafka: the result type and the argument types of each.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "version": (C.c_int,),
    "conf_new": (_P,),
    "conf_set": (C.c_int, _P, _S, _S, _P, _SIZE),
    "conf_destroy": (None, _P),
    "conf_set_dr_msg_cb": (None, _P, _P),
    "conf_set_throttle_cb": (None, _P, _P),
    "conf_set_log_cb": (None, _P, _P),
    "conf_set_error_cb": (None, _P, _P),
    "conf_set_events": (None, _P, C.c_int),
    "new": (_P, C.c_int, _P, _P, _SIZE),
    "destroy": (None, _P),
    "set_log_queue": (C.c_int, _P, _P),
    "set_log_level": (None, _P, C.c_int),
    "poll": (C.c_int, _P, C.c_int),
    "flush": (C.c_int, _P, C.c_int),
    "purge": (C.c_int, _P, C.c_int),
    "outq_len": (C.c_int, _P),
    "last_error": (C.c_int,),
    "error_code": (C.c_int, _P),
    "error_string": (_S, _P),
    "error_is_fatal": (C.c_int, _P),
    "error_is_retriable": (C.c_int, _P),
    "error_txn_requires_abort": (C.c_int, _P),
    "error_destroy": (None, _P),
    "topic_new": (_P, _P, _S, _P),
    "topic_name": (_S, _P),
    "topic_destroy": (None, _P),
    "metadata": (C.c_int, _P, C.c_int, _P, _P, C.c_int),
    "metadata_destroy": (None, _P),
    "init_transactions": (_P, _P, C.c_int),
    "begin_transaction": (_P, _P),
    "send_offsets_to_transaction": (_P, _P, _P, _P, C.c_int),
    "commit_transaction": (_P, _P, C.c_int),
    "abort_transaction": (_P, _P, C.c_int),
    "consumer_group_metadata_new": (_P, _S),
    "consumer_group_metadata_destroy": (None, _P),
    "mem_malloc": (_P, _P, _SIZE),
    "topic_partition_list_new": (_P, C.c_int),
    "topic_partition_list_add": (_P, _P, _S, _I32),
    "topic_partition_list_destroy": (None, _P),
    "consume_start_queue": (C.c_int, _P, _I32, _I64, _P),
    "consume_stop": (C.c_int, _P, _I32),
    "pause_partitions": (C.c_int, _P, _P),
    "resume_partitions": (C.c_int, _P, _P),
    "seek_partitions": (_P, _P, _P, C.c_int),
    "sasl_background_callbacks_enable": (_P, _P),
    "queue_new": (_P, _P),
    "queue_forward": (None, _P, _P),
    "queue_get_main": (_P, _P),
    "queue_poll": (_P, _P, C.c_int),
    "queue_length": (_SIZE, _P),
    "queue_destroy": (None, _P),
    "consume_batch_queue": (C.c_ssize_t, _P, C.c_int, _P, _SIZE),
    "event_message_array": (_SIZE, _P, _P, _SIZE),
    "event_destroy": (None, _P),
    "event_error": (C.c_int, _P),
    "event_error_string": (_S, _P),
    "event_DescribeTopics_result": (_P, _P),
    "AdminOptions_new": (_P, _P, C.c_int),
    "AdminOptions_set_request_timeout": (C.c_int, _P, C.c_int, _S, _SIZE),
    "AdminOptions_set_include_authorized_operations": (_P, _P, C.c_int),
    "AdminOptions_destroy": (None, _P),
    "TopicCollection_of_topic_names": (_P, _P, _SIZE),
    "TopicCollection_destroy": (None, _P),
    "DescribeTopics": (None, _P, _P, _P, _P),
    "DescribeTopics_result_topics": (_P, _P, _P),
    "TopicDescription_name": (_S, _P),
    "TopicDescription_topic_id": (_P, _P),
    "TopicDescription_partitions": (_P, _P, _P),
    "TopicDescription_authorized_operations": (_P, _P, _P),
    "TopicDescription_error": (_P, _P),
    "Uuid_base64str": (_S, _P),
    "ConfigResource_new": (_P, C.c_int, _S),
    "ConfigResource_destroy_array": (None, _P, _SIZE),
    "ConfigResource_name": (_S, _P),
    "ConfigResource_error": (C.c_int, _P),
    "ConfigResource_error_string": (_S, _P),
    "DescribeConfigs": (None, _P, _P, _SIZE, _P, _P),
    "DescribeConfigs_result_resources": (_P, _P, _P),
    "clusterid": (_P, _P, C.c_int),
    "mem_free": (None, _P, _P),
    "queue_yield": (None, _P),
    "event_opaque": (_P, _P),
    "AdminOptions_set_opaque": (None, _P, _P),
    "AdminOptions_set_isolation_level": (_P, _P, C.c_int),
    "ListOffsets": (None, _P, _P, _P, _P),
    "event_ListOffsets_result": (_P, _P),
    "ListOffsets_result_infos": (_P, _P, _P),
}
#: Functions that the loops call for each record, in the order of `api` in records.c.
_BY_RECORD = (
    "topic_name",
    "message_timestamp",
    "message_headers",
    "header_get_all",
    "message_destroy",
    "produceva",
    "headers_new",
    "header_add",
    "headers_destroy",
)
#: Functions for each config, in the order of `config_api` there.
_BY_CONFIG = (
    "ConfigResource_configs",
    "ConfigEntry_name",
    "ConfigEntry_value",
    "ConfigEntry_source",
    "ConfigEntry_is_default",
    "ConfigEntry_is_read_only",
    "ConfigEntry_is_sensitive",
)
#: Functions for each partition whose offsets are queried, in the order of `offset_api` there.
_BY_PLACE = (
    "topic_partition_list_add",
    "ListOffsetsResultInfo_topic_partition",
    "ListOffsetsResultInfo_timestamp",
    "topic_partition_get_leader_epoch",
)


class NativeUnavailable(Exception):
    """The native code cannot be used here; the text says why."""


class Library:
    """The libraries: `rd_kafka_*` without that prefix, and the loops. Raises NativeUnavailable."""

    def __init__(self) -> None:
        loops = Path(__file__).with_name(file_name(platform.system(), platform.machine()))
        if not loops.exists():
            raise NativeUnavailable(
                f"{loops.name} is not there: built without a compiler, or for no such platform"
            )
        try:
            # The client's own module: this finds its libraries wherever its wheel keeps them.
            librdkafka, self._loops = C.CDLL(_cimpl.__file__), C.CDLL(str(loops))
            for name, (result, *arguments) in _FUNCTIONS.items():
                setattr(self, name, _function(librdkafka, f"rd_kafka_{name}", result, arguments))
            self._api = _table(librdkafka, _BY_RECORD)
            self.config_api = _table(librdkafka, _BY_CONFIG)
            self.offset_api = _table(librdkafka, _BY_PLACE)
        except (OSError, AttributeError) as error:
            raise NativeUnavailable(str(error)) from error
        if self.version() < OLDEST:
            raise NativeUnavailable(
                f"librdkafka {confluent_kafka.libversion()[0]} is older than 2.0"
            )
        self._check_sizes()
        self.api = C.addressof(self._api)
        self.enter = _function(self._loops, "enter", None, (_P, _P, _I64))
        self.survey = _function(self._loops, "survey", _I64, (_P, _P, _I64, _P, _P, _P, _P))
        filled = (_P, _P, _I64, _P, _P, _P, _I64, _P, _P, _I64)
        self.fill = _function(self._loops, "fill", _I64, filled)
        self.give_back = _function(self._loops, "give_back", _I64, (_P, _P, _I64, _P))
        self.send = _function(self._loops, "send", _I64, (_P, _P, _P, _I32, _P, _I64, _P, _P))
        self.config_bytes = _function(self._loops, "config_bytes", _I64, (_P, _P, _P, _I64))
        self.metadata_bytes = _function(self._loops, "metadata_bytes", _I64, (_P, _P, _I64, _P))
        self.ask_offsets = _function(self._loops, "ask_offsets", None, (_P, _P, _P, _I64))
        self.take_offsets = _function(
            self._loops, "take_offsets", None, (_P, _P, _I64, _P, _P, _I64)
        )
        self.delivered = _address(self._loops, "delivered")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"librdkafka's rd_kafka_{name} is not among those that are used")

    def _check_sizes(self) -> None:
        """Raise NativeUnavailable if Python's layouts differ from those of the compiled loops."""
        measured = (_I64 * 18)()
        _function(self._loops, "sizes", None, (_P,))(measured)
        pointer = C.sizeof(_P)
        of_rows = map(C.sizeof, (structures.Columns, structures.Binary, structures.OutgoingRows))
        known = [structures.RANGE.itemsize, *of_rows, structures.CURSOR_BYTES]
        of_reading = map(C.sizeof, (structures.Table, structures.Surveyed))
        known += [pointer * len(_BY_RECORD), 72, 72, *of_reading]
        known += [pointer * len(_BY_CONFIG), 48, 32, 40, 24, C.sizeof(structures.PartitionStruct)]
        known += [pointer * len(_BY_PLACE), C.sizeof(structures.Asked)]
        if [*measured] != known:
            raise NativeUnavailable("the compiled records.c is of another version than library.py")

    def client(
        self,
        kind: int,
        settings: dict[str, Any],
        prepare: Callable[[int], None] = lambda _conf: None,
    ) -> int:
        """Make a client, CONSUMER or PRODUCER; `prepare` gets its configuration to add callbacks.
        Raises KafkaException for settings that are refused."""
        text = C.create_string_buffer(512)
        conf = self.conf_new()
        for name, value in settings.items():
            text_value = str(value).lower() if isinstance(value, bool) else str(value)
            if self.conf_set(conf, name.encode(), text_value.encode(), text, len(text)) != 0:
                self.conf_destroy(conf)
                raise KafkaException(
                    KafkaError(KafkaError._INVALID_ARG, text.value.decode(errors="replace"))
                )
        prepare(conf)
        handle = self.new(kind, conf, text, len(text))
        if not handle:
            self.conf_destroy(conf)
            raise KafkaException(KafkaError(KafkaError._FAIL, text.value.decode(errors="replace")))
        if "sasl.oauthbearer.method" in settings:
            # Otherwise the first token would wait for a poll.
            self.check(self.sasl_background_callbacks_enable(handle))
        return int(handle)

    def check(self, error: int | None) -> None:
        """Raise KafkaException for an `rd_kafka_error_t`; None means no error."""
        if error:
            failure = KafkaError(
                self.error_code(error),
                self.error_string(error).decode(errors="replace"),
                fatal=bool(self.error_is_fatal(error)),
                retriable=bool(self.error_is_retriable(error)),
                txn_requires_abort=bool(self.error_txn_requires_abort(error)),
            )
            self.error_destroy(error)
            raise KafkaException(failure)

    def look_up(self, handle: int | None, topic: int | None, milliseconds: int) -> int:
        """Query metadata of a topic that a client knows, or, for None, of all of them, so that the
        client uses it. Returns the error's code, 0 if a broker answered."""
        answer = C.c_void_p()
        code = int(self.metadata(handle, 0, topic, C.byref(answer), milliseconds))
        if not code:
            self.metadata_destroy(answer)
        return code

    def annotated(self, offsets: "dict[tuple[str, int], tuple[int, str]]") -> int:
        """A librdkafka list of partitions with offsets and their metadata; to be destroyed."""
        places = self.topic_partition_list_new(len(offsets))
        for (topic, partition), (offset, metadata) in offsets.items():
            place = structures.PartitionStruct.from_address(
                self.topic_partition_list_add(places, topic.encode(), partition)
            )
            place.offset = offset
            if text := metadata.encode():
                # With a terminating 0, like confluent-kafka's, which reads it as a C string
                # whatever its length. In librdkafka's own memory, since it frees it with the list.
                place.metadata_size = len(text) + 1
                place.metadata = self.mem_malloc(None, place.metadata_size)
                C.memmove(place.metadata, text, place.metadata_size)
        return int(places)


def file_name(system: str, machine: str) -> str:
    """The name of the compiled loops for a platform, as Python calls it."""
    processor = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine.lower(), machine.lower())
    return f"records-{system.lower()}-{processor}.so"


def _function(library: C.CDLL, name: str, result: Any, arguments: Any) -> Any:
    function = getattr(library, name)
    function.restype, function.argtypes = result, tuple(arguments)
    return function


def _table(library: C.CDLL, names: tuple[str, ...]) -> Any:
    """A table of the addresses of librdkafka's functions."""
    return (_P * len(names))(*(_address(library, f"rd_kafka_{name}") for name in names))


def _address(library: C.CDLL, name: str) -> int:
    return int(C.cast(getattr(library, name), _P).value or 0)


@cache
def library() -> Library:
    """The library, loaded once. Raises NativeUnavailable; `selfcheck.problem` says if it works."""
    return Library()
