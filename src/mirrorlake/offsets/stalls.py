"""Since when partitions with records that wait have not moved. Pure: times are seconds that the
caller gives."""

from collections.abc import Collection

from mirrorlake.offsets.positions import PartitionGeneration


class Stalls:
    """What samples of one flow say of it. For one thread."""

    def __init__(self) -> None:
        #: What was produced, and when a partition was seen to get there, or to have nothing to do.
        self._stands: dict[PartitionGeneration, tuple[int, float]] = {}

    def seed(self, key: PartitionGeneration, produced: int, since: float) -> None:
        """Take over from an earlier process that a partition stands at a position since then."""
        self._stands[key] = (produced, since)

    def keep(self, keys: Collection[PartitionGeneration]) -> None:
        """Forget all partitions but these."""
        self._stands = {key: stands for key, stands in self._stands.items() if key in keys}

    def observe(
        self, key: PartitionGeneration, at: float, produced: int, waiting: int
    ) -> float | None:
        """Note a sample: the position of the flow, and how many records wait behind it. Gives since
        when they wait and it has not moved, as far as was seen; None where none wait."""
        before = self._stands.get(key)
        stands = waiting > 0 and before is not None and before[0] == produced
        since = min(at, before[1]) if before is not None and stands else at
        self._stands[key] = (produced, since)
        return since if waiting > 0 else None
