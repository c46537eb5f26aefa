"""What of a record is different, in a sentence that shows no content. Pure."""

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]


def describe(wanted: Row, got: Row) -> str:
    """Which fields of two records differ, and how: lengths and null are shown, bytes are not."""
    said = []
    if wanted["timestamp"] != got["timestamp"]:
        said.append(f"timestamp {wanted['timestamp']} became {got['timestamp']}")
    for name in ("key", "value"):
        if wanted[name] != got[name]:
            said.append(f"{name}: {_size(wanted[name])} became {_size(got[name])}")
    said += _headers(wanted["headers"] or [], got["headers"] or [])
    return "; ".join(said)


def _headers(wanted: list[Row], got: list[Row]) -> list[str]:
    if len(wanted) != len(got):
        return [f"{len(wanted)} headers became {len(got)}"]
    said = []
    for number, (one, other) in enumerate(zip(wanted, got, strict=True)):
        if one["key"] != other["key"]:
            said.append(f"header {number}: another name")
        elif one["value"] != other["value"]:
            said.append(f"header {number}: {_size(one['value'])} became {_size(other['value'])}")
    return said


def _size(value: bytes | None) -> str:
    if value is None:
        return "null"
    return f"{len(value)} bytes" if value else "empty"
