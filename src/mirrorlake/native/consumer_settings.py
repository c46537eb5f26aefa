"""Settings of librdkafka for a consumer that reads ranges of offsets."""

from collections.abc import Mapping
from typing import Any

from mirrorlake.native.received import own_send_size

#: By which the connections of a client are known (`received.py`).
SEND_SIZE = "socket.send.buffer.bytes"
#: What it takes to know when a range is over (`native/reader.py`).
_REQUIRED: Mapping[str, str | int | bool] = {
    # with one librdkafka looks for its coordinator, which takes a right on the group
    "group.id": "",
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    # is for producers, but librdkafka lets no `fetch.max.bytes` be less
    "message.max.bytes": 1_000_000,
    # a single record may be larger than what is asked for
    "receive.message.max.bytes": 2_000_000_000,
}
#: Where librdkafka's defaults are made for small consumers; who makes a reader may say otherwise.
#: Memory has a bound: what was fetched ahead, 16 MB and what comes with one answer of each broker.
_TUNED: Mapping[str, str | int | bool] = {
    "check.crcs": True,
    "fetch.message.max.bytes": 4 << 20,
    "fetch.max.bytes": 32 << 20,
    # With the defaults a broker answers at each record that comes while ranges are read, and each
    # time about all partitions; an answer of nothing, or of what is read no more, is waited for.
    "fetch.min.bytes": 4 << 10,
    "fetch.wait.max.ms": 20,
    "fetch.error.backoff.ms": 50,
    # librdkafka waits a second where as much as it may have is fetched already
    "fetch.queue.backoff.ms": 10,
    "queued.max.messages.kbytes": 16 << 10,
    "queued.min.messages": 1_000_000,  # the bytes are the bound
    "socket.timeout.ms": 300_000,  # of a whole answer: see `silence.Silence`
}
#: Of a reader over a link of which an answer of the size above may take as long as a dead one is
#: waited for.
_SMALL_ANSWERS: Mapping[str, str | int | bool] = {
    "fetch.message.max.bytes": 64 << 10,
    "fetch.max.bytes": 1 << 20,
    "queued.max.messages.kbytes": 512,
}


def consumer_settings(settings: Mapping[str, Any], small_answers: bool) -> dict[str, Any]:
    """The settings of a client that reads ranges (`kafka.log.open_log` says how), those of its user
    among them."""
    answers = _SMALL_ANSWERS if small_answers else {}
    return {SEND_SIZE: own_send_size(), **_TUNED, **answers, **settings, **_REQUIRED}
