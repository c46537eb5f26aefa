"""Everything that a field of a record can be, beside every other."""

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
