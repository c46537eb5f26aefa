"""Where the logs of a source end, as a landing query asks for it."""

import time
from collections.abc import Collection, Mapping

from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.offsets.as_of import noted_ends
from mirrorlake.offsets.positions import TopicAndPartition

#: How long no leader may answer before the query fails, seconds.
PATIENCE_SECONDS = 20.0


class SourceEnds:
    """Asks one cluster, as often as batches are planned: ends are last stable offsets."""

    def __init__(self, alias: str, client: Mapping[str, str | int | bool]) -> None:
        self._admin = ClusterAdmin(alias, client)
        self._heard = time.monotonic()

    def all(self, keys: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, int]:
        """Those of all partitions. Raises ClusterUnreachable where one is not reported."""
        return self._admin.end_offsets(keys, committed=True)

    def known(self, keys: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, int]:
        """Those that are reported. Raises ClusterUnreachable when no leader answers for long; a
        partition whose leader alone does not answer stays where it is, until the landing worker
        finds out why."""
        ends = self._admin.end_offsets(keys, committed=True, skip_silent=True)
        now = time.monotonic()
        if ends or not keys:
            self._heard = now
        elif now - self._heard > PATIENCE_SECONDS:
            raise ClusterUnreachable(
                f"no leader of cluster {self._admin.alias} reports the ends of its partitions; it "
                "is asked again",
                alias=self._admin.alias,
            )
        return ends

    def noted(self, ends: Mapping[TopicAndPartition, int]) -> str | None:
        """What a batch that comes to the ends of all its logs notes of those that go on behind."""
        later = self._admin.end_offsets(list(ends), committed=False, skip_silent=True)
        return noted_ends(ends, later)
