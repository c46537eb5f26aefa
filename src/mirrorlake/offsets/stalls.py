"""Since when partitions with records that wait have not moved. Pure: times are seconds that the
caller gives."""

from collections.abc import Collection

from mirrorlake.offsets.positions import PartitionGeneration


class Stalls:
    """What samples of one flow say of it. For one thread.

    Time in which a flow was not sampled for longer than `quiet` seconds is none in which it could
    have moved: no process ran it, or one of its clusters was away.
    """

    def __init__(self, quiet: float) -> None:
        self._quiet = quiet
        #: What was produced, when a partition was seen to get there, or to have nothing to do, and
        #: when it was sampled last.
        self._stands: dict[PartitionGeneration, tuple[int, float, float]] = {}

    def seed(self, key: PartitionGeneration, produced: int, since: float, until: float) -> None:
        """Take over from an earlier process that a partition stood at a position from a time until
        another one."""
        self._stands[key] = (produced, since, until)

    def keep(self, keys: Collection[PartitionGeneration]) -> None:
        """Forget all partitions but these."""
        self._stands = {key: stands for key, stands in self._stands.items() if key in keys}

    def observe(
        self, key: PartitionGeneration, at: float, produced: int, waiting: int
    ) -> float | None:
        """Note a sample: the position of the flow, and how many records wait behind it. Gives since
        when they wait and it has not moved, as far as was seen, later by the time in which nothing
        was; None where none wait."""
        before = self._stands.get(key)
        since = at
        if before is not None and waiting > 0 and before[0] == produced:
            unseen = at - before[2]
            since = min(at, before[1] + (unseen if unseen > self._quiet else 0.0))
        self._stands[key] = (produced, since, at)
        return since if waiting > 0 else None
