"""Offset syncs for MirrorMaker 2's readers, from the map: a task of a flow's control loop.

Each partition gives the first and the last pair of offsets that were mapped since the turn before.
MirrorMaker 2 writes a pair every `offset.lag.max` records and, since KAFKA-15906, the newest pair
at each flush; its readers keep few of them, more densely near the end. The map has the rest.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mirrorlake.lake.lake import Lake
from mirrorlake.mm2.formats import OffsetSync
from mirrorlake.mm2.mirror_topics import OffsetSyncTopic
from mirrorlake.offsets.positions import TopicAndPartition


class OffsetSyncs:
    """The offset syncs of one flow; for one thread.

    `remote_topic` gives the target topic of a source topic, None for one that is not mirrored, and
    `target_generation` the generation of it that is produced to, None if that is over.
    """

    def __init__(
        self,
        flow: str,
        lake: Lake,
        topic: OffsetSyncTopic,
        remote_topic: Callable[[str], str | None],
        target_generation: Callable[[str], int | None],
    ) -> None:
        self._flow, self._lake, self._topic = flow, lake, topic
        self._remote_topic, self._target_generation = remote_topic, target_generation
        self._since: int | None = None
        #: What was mapped into topics that were not, or not known to be, the ones of now.
        self._left: list[Mapping[str, Any]] = []

    def emit(self) -> int:
        """Write the new pairs; returns how many there were. Raises as `OffsetSyncTopic.publish`.

        The first turn of a process writes the newest pair of each partition, whether or not another
        process did; into a topic that it has just made, it writes the first pair too. A pair that
        is older than a reader's newest makes the reader forget all.
        """
        made = self._topic.ensure()
        if made:  # the topic lacks what earlier turns wrote
            self._since, self._left = None, []
        since = -1 if self._since is None else self._since
        rows = [*self._lake.ask("offset_syncs", flow=self._flow, batch_id=since), *self._left]
        living, left = list[Mapping[str, Any]](), list[Mapping[str, Any]]()
        for row in rows:
            (living if self._is_living(row) else left).append(row)
        fresh = syncs_of(living, firsts=made or self._since is not None)
        self._topic.publish(fresh)
        self._since = max([since, *(row["batch_id"] for row in rows)])
        self._left = left
        return len(fresh)

    def _is_living(self, row: Mapping[str, Any]) -> bool:
        """Whether it is of a target topic that exists, in the generation that the flow writes to
        now; not known before the target was asked."""
        return bool(
            row["target_topic"] == self._remote_topic(row["topic"])
            and row["target_generation"] == self._target_generation(row["topic"])
        )


def syncs_of(rows: Iterable[Mapping[str, Any]], firsts: bool) -> list[OffsetSync]:
    """The pairs of each partition's newest generation, in order; with `firsts` also the first."""
    newest: dict[TopicAndPartition, Mapping[str, Any]] = {}
    for row in rows:
        key = (row["topic"], row["partition"])
        if key not in newest or row["generation"] > newest[key]["generation"]:
            newest[key] = row
    syncs = []
    for (topic, partition), row in sorted(newest.items()):
        if firsts and row["source_first"] < row["source_last"]:
            syncs.append(OffsetSync(topic, partition, row["source_first"], row["target_first"]))
        syncs.append(OffsetSync(topic, partition, row["source_last"], row["target_last"]))
    return syncs
