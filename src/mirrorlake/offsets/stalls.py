"""Since when partitions with waiting records stand still. Pure: times are the caller's seconds."""

from collections.abc import Collection

from mirrorlake.offsets.positions import PartitionGeneration


class Stalls:
    """The stalls seen in samples of one flow. For one thread.

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
        when they have waited without a move, as far as was seen, moved up by the time in which
        nothing was; None if none wait."""
        before = self._stands.get(key)
        since = at
        if before is not None and waiting > 0 and before[0] == produced:
            unseen = at - before[2]
            since = min(at, before[1] + (unseen if unseen > self._quiet else 0.0))
        self._stands[key] = (produced, since, at)
        return since if waiting > 0 else None
