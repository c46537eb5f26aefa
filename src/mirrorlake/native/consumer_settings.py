"""Settings of librdkafka for a consumer that reads ranges of offsets."""

from collections.abc import Mapping
from typing import Any

from mirrorlake.native.received import own_send_size

#: Identifies the connections of a client (`received.py`).
SEND_SIZE = "socket.send.buffer.bytes"
#: Required to know when a range is over (`native/reader.py`).
_REQUIRED: Mapping[str, str | int | bool] = {
    # with one librdkafka looks for its coordinator, which needs a right on the group
    "group.id": "",
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    # for producers, but librdkafka rejects a smaller `fetch.max.bytes`
    "message.max.bytes": 1_000_000,
    # a single record may be larger than the requested size
    "receive.message.max.bytes": 2_000_000_000,
}
#: Replaces defaults that suit small consumers; the caller's settings come first. Memory is bounded:
#: 16 MB fetched ahead, and one answer of each broker.
_TUNED: Mapping[str, str | int | bool] = {
    "check.crcs": True,
    "fetch.message.max.bytes": 4 << 20,
    "fetch.max.bytes": 32 << 20,
    # By default a broker answers at each record that arrives while ranges are read, each time about
    # all partitions; and an answer that is empty, or of partitions no longer read, is waited for.
    "fetch.min.bytes": 4 << 10,
    "fetch.wait.max.ms": 20,
    "fetch.error.backoff.ms": 50,
    # librdkafka otherwise waits a second once its fetch queue is full
    "fetch.queue.backoff.ms": 10,
    "queued.max.messages.kbytes": 16 << 10,
    "queued.min.messages": 1_000_000,  # the bytes are the bound
    "socket.timeout.ms": 300_000,  # for a whole answer: see `silence.Silence`
}
#: For a link so slow that an answer of the above size may take as long as a dead one is waited for.
_SMALL_ANSWERS: Mapping[str, str | int | bool] = {
    "fetch.message.max.bytes": 64 << 10,
    "fetch.max.bytes": 1 << 20,
    "queued.max.messages.kbytes": 512,
}


def consumer_settings(settings: Mapping[str, Any], small_answers: bool) -> dict[str, Any]:
    """The settings of a client that reads ranges (`kafka.log.open_log`), with its user's."""
    answers = _SMALL_ANSWERS if small_answers else {}
    return {SEND_SIZE: own_send_size(), **_TUNED, **answers, **settings, **_REQUIRED}
