"""Rows for the native producer, and settings of clusters that librdkafka mocks."""

import pyarrow as pa

MOCK = {
    "bootstrap.servers": "127.0.0.1:1",
    "test.mock.num.brokers": 1,
    "linger.ms": 0,
    "log_level": 2,
}
#: A broker that answers each request after this time, ms.
SLOW = {**MOCK, "test.mock.broker.rtt": 2_000}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def rows(values: list[bytes | None]) -> pa.RecordBatch:
    """Rows without keys and headers."""
    count = len(values)
    columns = {
        "key": pa.nulls(count, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "timestamp": pa.array([1_000] * count, pa.timestamp("ms")),
        "headers": pa.nulls(count, HEADERS),
    }
    return pa.record_batch(columns)
