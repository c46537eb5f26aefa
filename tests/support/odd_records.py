"""Everything that a field of a record can be, beside every other."""

import time

import pyarrow as pa
from hypothesis import strategies as st

from mirrorlake.native.producer import Producer
from tests.support.kafka import NewRecord

ODD = bytes(range(256))


def odd_records() -> list[NewRecord]:
    """A record for each key, value and headers."""
    keys: list[bytes | None] = [None, b"", b"key", b"\xff\xfe\x00", ODD]
    values: list[bytes | None] = [None, b"", b"value", b"\x00", ODD]
    headers: list[list[tuple[str, bytes | None]] | None] = [
        None,
        [("a", b"1"), ("b", None), ("a", b""), ("a", b"1"), ("A", b"\xff\x00\xfe")],
        [("", b"no name")],
        [("z", None)],
        [("ключ-🔑", ODD)] * 3,
    ]
    return [NewRecord(v, k, 0, h) for k in keys for v in values for h in headers]


#: What a broker before 4.0 takes by default, and one of today where the topic says so.
#: Any time, for ever: a segment whose records are all of 1970 is older than seven days.
ANY_TIME = {
    "message_timestamp_after_max_ms": str(2**63 - 1),
    "message_timestamp_before_max_ms": str(2**63 - 1),
    "retention_ms": "-1",
}
NOW = int(time.time() * 1_000)
#: Nanoseconds and microseconds, by mistake; both ends of 64 bits; no time; the ends of what
#: `timestamp` holds.
TIMES = (
    NOW * 1_000_000,
    NOW * 1_000,
    2**63 - 1,
    -(2**63),
    -1,
    -2,
    1,
    -62_135_596_800_000,
    253_402_300_799_999,
    NOW,
)
BYTES = st.none() | st.binary(max_size=20) | st.sampled_from([b"", bytes(1 << 20)])
ANY_NAME = st.binary(max_size=6) | st.sampled_from(
    [b"", b"\xff\xfe", b"\xed\xa0\x80", "\N{REPLACEMENT CHARACTER}".encode()]
)
TEXT_NAME = st.text(max_size=6).map(str.encode)
ODD_TIMES = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(TIMES)
#: By lane: confluent-kafka takes names for texts that end at a zero.
NAMES = {"native": ANY_NAME, "python": TEXT_NAME.filter(lambda name: 0 not in name)}


def odd_rows(
    lane: str, times: st.SearchStrategy[int] | None = None
) -> st.SearchStrategy[list[dict[str, object]]]:
    """Records as rows. librdkafka tells no length of a name, so that one with a zero is exact where
    its value is not null."""
    header = st.builds(
        lambda name, value: {"key": name, "value": b"" if 0 in name else value}, NAMES[lane], BYTES
    )
    record = st.fixed_dictionaries(
        {
            "timestamp_ms": (ODD_TIMES if times is None else times).filter(bool),
            "key": BYTES,
            "value": BYTES,
            "headers": st.none() | st.lists(header, min_size=1, max_size=5),
        }
    )
    many = {
        "timestamp_ms": NOW,
        "key": b"",
        "value": None,
        "headers": [{"key": b"h%d" % n, "value": None} for n in range(10_000)],
    }
    return st.lists(record, min_size=20, max_size=60).map(lambda rows: [*rows, many])


def send_rows(bootstrap: str, topic: str, rows: list[dict[str, object]]) -> None:
    """Write rows as they are, which confluent-kafka's own producer could not."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "message.max.bytes": 10_000_000}
    )
    batch = pa.RecordBatch.from_pylist([{"timestamp": None, **row} for row in rows], ROWS)
    shipment = producer.shipment(topic, 0, batch)
    shipment.send()
    assert producer.flush(30) == 0 and shipment.refused() is None


HEADERS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
ROWS = pa.schema(
    [
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
    ]
)
