"""A log that verify cannot read ends it with one sentence that says what to do."""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import ClusterUnusable
from mirrorlake.verify.log_reader import LogReader, Throttle


@pytest.fixture
def reader() -> Iterator[LogReader]:
    reader = LogReader(
        "west", {"bootstrap.servers": "127.0.0.1:1"}, Throttle(None, lambda: 0.0, lambda _: None)
    )
    yield reader
    reader.close()


def test_a_partition_without_a_leader(reader: LogReader, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_leader(*_asked: object, **_how: object) -> None:
        raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))

    class Consumer:
        get_watermark_offsets = staticmethod(no_leader)
        poll = close = staticmethod(lambda *_: None)

    monkeypatch.setattr(reader, "_consumer", Consumer())
    with pytest.raises(ClusterUnusable) as caught:
        reader.bounds(("t", 0))
    assert caught.value.message.startswith("cluster west cannot be read: ")
    assert caught.value.message.endswith("; what was compared until now is kept, run verify again")
