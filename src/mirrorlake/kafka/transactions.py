"""Open transactions of partitions, and their producers (KIP-664: DescribeProducers), which
librdkafka 2.16 cannot query.

Each leader is queried by its own connection. Answers of unreachable leaders are missing.
"""

import logging
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.kafka.wire import BrokerConnection, WireUnsupported
from mirrorlake.offsets.positions import TopicAndPartition

logger = logging.getLogger(__name__)

_DESCRIBE_PRODUCERS = 61
#: How long a broker may take to answer, seconds.
_ANSWER_SECONDS = 5.0


@dataclass(frozen=True)
class OpenTransaction:
    """An open transaction in a partition: producer, first offset, last write, ms since 1970."""

    producer_id: int
    first_offset: int
    written_ms: int


def open_transactions(
    admin: ClusterAdmin, settings: Settings, wanted: Collection[TopicAndPartition]
) -> dict[TopicAndPartition, OpenTransaction]:
    """The oldest open transaction of each of some partitions. Partitions without one, or with a
    leader that cannot say, are missing. `settings` are librdkafka's. Raises ClusterUnreachable."""
    transactions: dict[TopicAndPartition, OpenTransaction] = {}
    for (host, port), keys in admin.leaders(wanted).items():
        try:
            with BrokerConnection(host, port, settings, _ANSWER_SECONDS) as broker:
                answer = broker.ask(_DESCRIBE_PRODUCERS, 0, request(keys), flexible=True)
            transactions.update(oldest(answer))
        except (OSError, WireUnsupported, struct.error, IndexError, UnicodeDecodeError) as error:
            what = "cluster %s: broker %s:%d does not report its open transactions: %s"
            logger.info(what, admin.alias, host, port, error)
    return transactions


def request(keys: Collection[TopicAndPartition]) -> bytes:
    """The body of a request about some partitions."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(keys):
        topics.setdefault(topic, []).append(partition)
    body = _count(len(topics) + 1)
    for name, partitions in topics.items():
        text = name.encode()
        numbers = struct.pack(f">{len(partitions)}i", *partitions)
        body += _count(len(text) + 1) + text + _count(len(partitions) + 1) + numbers + b"\0"
    return body + b"\0"


def oldest(answer: bytes) -> dict[TopicAndPartition, OpenTransaction]:
    """The oldest open transaction of each partition with one in an answer."""
    reader = _AnswerDecoder(answer)
    reader.skip(4)  # throttle time
    transactions: dict[TopicAndPartition, OpenTransaction] = {}
    for _ in reader.items():
        topic = reader.text() or ""
        for _ in reader.items():
            partition, _error = reader.numbers(">ih")
            reader.text()
            for _ in reader.items():
                producer, _epoch, _last, written, _coordinator, first = reader.numbers(">qiiqiq")
                reader.tags()
                known = transactions.get((topic, partition))
                if first >= 0 and (known is None or first < known.first_offset):
                    transactions[topic, partition] = OpenTransaction(producer, first, written)
            reader.tags()
        reader.tags()
    return transactions


def _count(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)


class _AnswerDecoder:
    """Reads the fields of an answer, one after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def skip(self, size: int) -> None:
        self._at += size

    def numbers(self, form: str) -> tuple[int, ...]:
        values: tuple[int, ...] = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def count(self) -> int:
        number = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    def text(self) -> str | None:
        size = self.count()
        if not size:
            return None
        self._at += size - 1
        return self._data[self._at - size + 1 : self._at].decode()

    def items(self) -> Iterator[None]:
        """Iterate once per entry of an array; the caller reads the array's end after the last."""
        for _ in range(max(0, self.count() - 1)):
            yield

    def tags(self) -> None:
        for _ in range(self.count()):
            self.count()
            self._at += self.count()
