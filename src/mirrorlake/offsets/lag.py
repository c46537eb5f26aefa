"""How late a partition is, in seconds, from samples of its source's end. Pure: times are seconds
that the caller gives.

Kafka does not say when an offset was written without reading the record. Samples do, nearly: if the
end was 100 at one sample and 200 at the next, offset 150 was written about half way between them.
So the lag of a partition is how long ago the first record that is not produced yet came to the
source; it is wrong by one interval of samples at most.
"""

from collections.abc import Collection
from itertools import islice

from mirrorlake.offsets.positions import PartitionGeneration

#: Samples that are kept of a partition that lags; with more, every second one is forgotten, so that
#: old lag gets coarser.
POINTS = 128


class LagHistory:
    """What was seen of the ends of the partitions of one flow. For one thread."""

    def __init__(self, points: int = POINTS) -> None:
        self._limit = points
        self._seen: dict[PartitionGeneration, list[tuple[float, int]]] = {}

    def seed(
        self, key: PartitionGeneration, at: float, produced: int, end: int, lag_seconds: float
    ) -> None:
        """Take over a sample of an earlier process: at that time, what was produced, the source's
        end, and the lag."""
        # The first record that was not produced had come just then: not between two samples, so no
        # interpolation.
        first = [(at - lag_seconds, produced + 1)] if end > produced + 1 and lag_seconds > 0 else []
        last = (at - lag_seconds, end) if end == produced + 1 else (at, end)
        self._seen[key] = [*first, last]

    def knows(self, key: PartitionGeneration) -> bool:
        """Whether there was a sample of this partition."""
        return key in self._seen

    def keep(self, keys: Collection[PartitionGeneration]) -> None:
        """Forget all partitions but these."""
        self._seen = {key: points for key, points in self._seen.items() if key in keys}

    def observe(self, key: PartitionGeneration, at: float, produced: int, end: int) -> float:
        """Note a sample and return the lag in seconds: 0 when all is produced.

        An end that went back is that of a topic made again: what was seen before says nothing about
        it. A clock that went back was wrong before: what was seen is as long ago as it was then.

        Args:
            key: the partition, in the generation that is landed.
            at: when, seconds.
            produced, end: positions: of the flow, and of the source's log.
        """
        points = self._seen.setdefault(key, [])
        if points and end < points[-1][1]:
            points.clear()
        if points and at < points[-1][0]:
            back = points[-1][0] - at
            points[:] = [(seen - back, known) for seen, known in points]
        if len(points) > 1 and points[-1][1] == points[-2][1] == end:
            points[-1] = (at, end)  # nothing came: one flat line, however long
        else:
            points.append((at, end))
        ahead = next(
            (index for index, point in enumerate(points) if point[1] > produced), len(points)
        )
        del points[: max(0, ahead - 1)]
        if len(points) > self._limit:
            points[:] = [points[0], *islice(points, 2, len(points) - 1, 2), points[-1]]
        return max(0.0, points[-1][0] - _came_at(points, produced)) if end > produced else 0.0


def _came_at(points: list[tuple[float, int]], produced: int) -> float:
    """When the record at offset `produced` came, as if the records between two samples had come
    evenly."""
    (since, behind), *later = points
    if behind > produced or not later:
        return since
    until, ahead = later[0]
    return since + (until - since) * (produced - behind + 1) / (ahead - behind + 1)
