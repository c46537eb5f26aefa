"""How many cores a load needs, from runs that were measured. Pure arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What a run costs: cores that are busy with no records, and CPU seconds for each million of
    records."""

    idle_cores: float
    cpu_seconds_per_million: float

    def cores(self, records_per_second: float, utilisation: float = 0.7) -> float:
        """Cores for a load, of which that share is to be busy; the rest takes peaks and catching
        up."""
        busy = self.idle_cores + records_per_second * self.cpu_seconds_per_million / 1e6
        return busy / utilisation


def fitted(points: Sequence[tuple[float, float]]) -> Cost | None:
    """The cost that fits samples (records per second, busy cores) best; None where they do not show
    it.

    A straight line through the points, by least squares. Where it would say that records cost
    nothing, or that idling gives cores back, all is put on the records: that never says too little
    for a load as high as those seen.
    """
    points = [(rate, cores) for rate, cores in points if rate >= 0 and cores >= 0]
    records, busy = sum(rate for rate, _ in points), sum(cores for _, cores in points)
    if records < 1:  # less than a record a second in all: the machine was idle
        return None
    middle, height = records / len(points), busy / len(points)
    spread = sum((rate - middle) ** 2 for rate, _ in points)
    together = sum((rate - middle) * (cores - height) for rate, cores in points)
    slope = together / spread if spread else 0.0
    idle = height - slope * middle
    if slope <= 0 or idle < 0:
        return Cost(0.0, busy / records * 1e6)
    return Cost(idle, slope * 1e6)
