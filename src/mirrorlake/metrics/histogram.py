"""Histograms of seconds. Pure.

Tasks report, per batch and partition, the number of records and exact percentiles of their latency.
A histogram is made of these, assuming that records are spread evenly between two percentiles: a
bucket is exact if its bound is one of them. The sum is exact, except that it never falls.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

#: Upper bounds of the buckets, inclusive, seconds; a last bucket has no bound.
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
#: Columns of a report, and the fraction of records that are at most as late as each.
_PARTS = (("min", 0.0), ("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))


@dataclass(frozen=True)
class Histogram:
    """`counts` by bucket, not cumulative; `total` is the sum of the observations, seconds."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    total: float = 0.0

    @property
    def count(self) -> int:
        """The number of observations."""
        return sum(self.counts)

    def cumulative(self) -> list[int]:
        """Cumulative counts by bucket, as in Prometheus."""
        return list(accumulate(self.counts))

    def plus(self, other: "Histogram") -> "Histogram":
        """The sum of both."""
        counts = zip(self.counts, other.counts, strict=True)
        return Histogram(tuple(map(sum, counts)), self.total + other.total)


def observed(seconds: float) -> Histogram:
    """A histogram of one observation."""
    at = bisect_left(BOUNDS, seconds)
    return Histogram(tuple(int(each == at) for each in range(len(BOUNDS) + 1)), seconds)


def of_records(kind: str, row: Mapping[str, Any], count: int) -> Histogram:
    """The latencies of `count` records, from a report's columns in milliseconds, such as
    `landing_p50_ms` for the kind `landing`; empty if these are null."""
    points = [(row[f"{kind}_{name}_ms"], part) for name, part in _PARTS]
    if not count or any(value is None for value, _ in points):
        return Histogram()
    below = [round(count * _part_within(points, bound * 1_000)) for bound in BOUNDS] + [count]
    counts = tuple(high - low for low, high in zip([0, *below[:-1]], below, strict=True))
    # If clocks differ a mean may be negative, and Prometheus takes a falling sum for a restart.
    return Histogram(counts, count * max(0.0, float(row[f"{kind}_avg_ms"])) / 1_000)


def _part_within(points: list[tuple[float, float]], bound: float) -> float:
    """The fraction of records at most as late as a bound, from points (milliseconds, fraction)."""
    for (low, part), (high, next_part) in zip(points, points[1:], strict=False):
        if bound < low:
            return part if (low, part) != points[0] else 0.0
        if bound < high:
            return part + (next_part - part) * (bound - low) / (high - low)
    return 1.0
