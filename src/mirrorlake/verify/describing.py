"""What of a record is different, in a sentence that shows no content. Pure."""

from collections.abc import Mapping
from typing import Any

RecordValues = Mapping[str, Any]


def describe(wanted: RecordValues, got: RecordValues) -> str:
    """Which fields of two records differ, and how: lengths and null are shown, bytes are not."""
    parts = []
    if wanted["timestamp"] != got["timestamp"]:
        parts.append(f"timestamp {wanted['timestamp']} became {got['timestamp']}")
    for name in ("key", "value"):
        if wanted[name] != got[name]:
            parts.append(f"{name}: {_size(wanted[name])} became {_size(got[name])}")
    parts += _headers(wanted["headers"] or [], got["headers"] or [])
    return "; ".join(parts)


def _headers(wanted: list[RecordValues], got: list[RecordValues]) -> list[str]:
    if len(wanted) != len(got):
        return [f"{len(wanted)} headers became {len(got)}"]
    parts = []
    for number, (one, other) in enumerate(zip(wanted, got, strict=True)):
        if one["key"] != other["key"]:
            parts.append(f"header {number}: another name")
        elif one["value"] != other["value"]:
            parts.append(f"header {number}: {_size(one['value'])} became {_size(other['value'])}")
    return parts


def _size(value: bytes | None) -> str:
    if value is None:
        return "null"
    return f"{len(value)} bytes" if value else "empty"
