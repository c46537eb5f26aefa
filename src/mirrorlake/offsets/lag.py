"""How late a partition is, and since when it stalls, by samples. Pure: times are the caller's
seconds.

Kafka does not tell when an offset was written unless the record is read. Samples do, nearly: if the
end was 100 at one sample and 200 at the next, offset 150 was written about half way between them.
So the lag of a partition is the time since its first unproduced record came to the source; it is
wrong by at most one interval of samples.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition

#: The most samples kept of a partition that lags; beyond that, every second one is dropped.
POINTS = 128


class LagHistory:
    """The sampled ends of the partitions of one flow. For one thread."""

    def __init__(self, points: int = POINTS) -> None:
        self._limit = points
        self._seen: dict[PartitionGeneration, list[tuple[float, int]]] = {}

    def seed(
        self, key: PartitionGeneration, at: float, produced: int, end: int, lag_seconds: float
    ) -> None:
        """Take over an earlier sample: its time, produced position, source's end, and lag."""
        # The first unproduced record came at exactly that time: there is no interpolation.
        first = [(at - lag_seconds, produced + 1)] if end > produced + 1 and lag_seconds > 0 else []
        last = (at - lag_seconds, end) if end == produced + 1 else (at, end)
        self._seen[key] = [*first, last]

    def keep(self, keys: Collection[PartitionGeneration]) -> None:
        """Forget all partitions but these."""
        self._seen = {key: points for key, points in self._seen.items() if key in keys}

    def observe(self, key: PartitionGeneration, at: float, produced: int, end: int) -> float:
        """Note a sample and return the lag in seconds: 0 when all is produced.

        An end that went back belongs to a topic made again: earlier samples do not apply to it. If
        the clock went back, it was wrong before: earlier samples keep their age.

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
            points[-1] = (at, end)  # no record came: one flat line, however long
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
    """When the record at `produced` came, if the records between two samples came evenly."""
    (since, behind), *later = points
    if behind > produced or not later:
        return since
    until, ahead = later[0]
    return since + (until - since) * (produced - behind + 1) / (ahead - behind + 1)


class Stalls:
    """Since when partitions with waiting records stand still, in samples of a flow. For one thread.

    A time without samples that is longer than `quiet` seconds does not count: no process ran the
    flow, or one of its clusters was away, so it could not have moved.
    """

    def __init__(self, quiet: float) -> None:
        self._quiet = quiet
        #: The produced position, when a partition was seen to get there or to have nothing to do,
        #: and when it was sampled last.
        self._stands: dict[PartitionGeneration, tuple[int, float, float]] = {}

    def seed(self, key: PartitionGeneration, produced: int, since: float, until: float) -> None:
        """Take over from an earlier process that a partition stood from `since` to `until`."""
        self._stands[key] = (produced, since, until)

    def keep(self, keys: Collection[PartitionGeneration]) -> None:
        """Forget all partitions but these."""
        self._stands = {key: stands for key, stands in self._stands.items() if key in keys}

    def observe(
        self, key: PartitionGeneration, at: float, produced: int, waiting: int
    ) -> float | None:
        """Note a sample: the flow's position, and how many records wait behind it. Returns since
        when they wait without a move, moved up by the time in which none was seen; else None."""
        before = self._stands.get(key)
        since = at
        if before is not None and waiting > 0 and before[0] == produced:
            unseen = at - before[2]
            since = min(at, before[1] + (unseen if unseen > self._quiet else 0.0))
        self._stands[key] = (produced, since, at)
        return since if waiting > 0 else None


@dataclass(frozen=True)
class Held:
    """An open transaction: the last stable offset, its first one; since when that was seen to stand
    there, or of its producer's last write, if earlier; and the producer's id, None if unknown."""

    stable: int
    since: float
    producer_id: int | None = None

    def by(self, at: float) -> "Held":
        """The same, with a start no later than `at`."""
        return self if self.since <= at else replace(self, since=at)


class OpenTransactions:
    """The open transactions seen in one flow's partitions, which hold back consumers of committed
    records. For one thread.

    Behind the last stable offset lie records that may or may not be committed (KIP-98), and all
    that came since. While that offset stands still and the log goes on behind it, a transaction is
    open there; one that a coordinator has lost stays open for ever (KIP-664).
    """

    def __init__(self) -> None:
        self._seen: dict[TopicAndPartition, Held] = {}
        self._standing: set[TopicAndPartition] = set()

    def seed(self, key: TopicAndPartition, held: Held) -> None:
        """Take over a transaction that an earlier process saw."""
        self._seen[key] = held

    def observe(self, at: float, open_at: Mapping[TopicAndPartition, int]) -> None:
        """Note a sample: the last stable offset of each partition whose log goes on behind it.
        Times later than this one came from a clock that was wrong."""
        self._standing = {
            key
            for key, stable in open_at.items()
            if key in self._seen and self._seen[key].stable == stable
        }
        self._seen = {
            key: self._seen[key].by(at) if key in self._standing else Held(stable, at)
            for key, stable in open_at.items()
        }

    def unknown(self) -> Collection[TopicAndPartition]:
        """Partitions that stand still by two samples, and whose producer is not known."""
        return {key for key in self._standing if self._seen[key].producer_id is None}

    def name(self, key: TopicAndPartition, producer_id: int, written_at: float) -> None:
        """Note the producer of a transaction, and when it wrote last."""
        held = self._seen[key]
        self._seen[key] = replace(held, since=min(held.since, written_at), producer_id=producer_id)

    def standing(self, key: TopicAndPartition) -> Held | None:
        """The open transaction of a partition that stands still by two samples; None if none."""
        return self._seen[key] if key in self._standing else None
