"""Which ranges of source offsets are compared, cut at the same offsets each time. Pure."""

import zlib
from collections.abc import Iterable

#: Offsets per range. Ranges begin and end at multiples of it, or at the ends of an extent.
RANGE_OFFSETS = 100_000

Extent = tuple[int, int]
"""Offsets, first and last inclusive."""


def cut(extents: Iterable[Extent], size: int = RANGE_OFFSETS) -> list[Extent]:
    """Ranges of at most `size` offsets."""
    pieces = []
    for first, last in extents:
        while first <= last:
            end = min(last, (first // size + 1) * size - 1)
            pieces.append((first, end))
            first = end + 1
    return pieces


def sampled(ranges: Iterable[Extent], name: str, share: float) -> list[Extent]:
    """About `share` (from 0 to 1) of the ranges of a partition, by its name: at least one of them,
    and the same ones each time."""
    weighed = sorted(
        (zlib.crc32(f"{name}:{first // RANGE_OFFSETS}".encode()), (first, last))
        for first, last in ranges
    )
    limit = share * 2**32
    return sorted(
        extent for number, (weight, extent) in enumerate(weighed) if weight < limit or number == 0
    )
