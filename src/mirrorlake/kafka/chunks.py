"""Cuts what is too large for one request. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any


def chunks(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Cut a sequence into chunks of at most `size`."""
    return (values[start : start + size] for start in range(0, len(values), size))
