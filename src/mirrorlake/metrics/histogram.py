"""Histograms of seconds. Pure.

Tasks report of each batch and partition how many records there were, and exact percentiles of how
late these were. A histogram is made of those: between two percentiles records are taken to be
spread evenly, so a bucket is exact where its bound is one of them. The sum is, unless it were to
fall.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

#: Upper bounds of the buckets, inclusive, seconds; one without a bound follows.
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
#: The part of the records that is at most as late as each column of a report.
_PARTS = (("min", 0.0), ("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))


@dataclass(frozen=True)
class Histogram:
    """`counts` by bucket, each without those below; `total` is the sum of what was observed,
    seconds."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    total: float = 0.0

    @property
    def count(self) -> int:
        """How many were observed."""
        return sum(self.counts)

    def cumulative(self) -> list[int]:
        """By bucket, those below included, as Prometheus has them."""
        return list(accumulate(self.counts))

    def plus(self, other: "Histogram") -> "Histogram":
        """Both together."""
        counts = zip(self.counts, other.counts, strict=True)
        return Histogram(tuple(map(sum, counts)), self.total + other.total)


def observed(seconds: float) -> Histogram:
    """One observation."""
    at = bisect_left(BOUNDS, seconds)
    return Histogram(tuple(int(each == at) for each in range(len(BOUNDS) + 1)), seconds)


def of_records(kind: str, row: Mapping[str, Any], count: int) -> Histogram:
    """How late `count` records were, by columns of a report in milliseconds, such as
    `landing_p50_ms` for the kind `landing`; nothing where these are null."""
    points = [(row[f"{kind}_{name}_ms"], part) for name, part in _PARTS]
    if not count or any(value is None for value, _ in points):
        return Histogram()
    below = [round(count * _part_within(points, bound * 1_000)) for bound in BOUNDS] + [count]
    counts = tuple(high - low for low, high in zip([0, *below[:-1]], below, strict=True))
    # Where clocks differ a mean may be negative; a sum that falls is a new process to Prometheus.
    return Histogram(counts, count * max(0.0, float(row[f"{kind}_avg_ms"])) / 1_000)


def _part_within(points: list[tuple[float, float]], bound: float) -> float:
    """Which part of the records is at most as late as a bound, by points (milliseconds, part)."""
    for (low, part), (high, next_part) in zip(points, points[1:], strict=False):
        if bound < low:
            return part if (low, part) != points[0] else 0.0
        if bound < high:
            return part + (next_part - part) * (bound - low) / (high - low)
    return 1.0
