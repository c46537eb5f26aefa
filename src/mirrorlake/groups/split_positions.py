"""Positions of groups split into those in logs that a flow mirrors and others, once for each answer
that differs from the one before. Pure."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from mirrorlake.groups.checkpoint_plan import GroupPartition
from mirrorlake.offsets.positions import Committed, TopicAndPartition

#: By group and partition, as a cluster reported them.
PositionsOfGroups = Mapping[str, Mapping[TopicAndPartition, Committed]]


class Split(NamedTuple):
    """Positions in mirrored logs, their partitions, and the keys of all other positions."""

    committed: Mapping[GroupPartition, Committed]
    places: Set[TopicAndPartition]
    elsewhere: Set[GroupPartition]


class SplitPositions:
    """Caches what follows from a cluster's answer, which must not be modified: an equal answer
    yields the same objects. For one thread."""

    def __init__(self) -> None:
        self._last: PositionsOfGroups | None = None
        self._topics: frozenset[str] = frozenset()
        self._within: tuple[Set[str], Mapping[TopicAndPartition, int]] = frozenset(), {}
        self._split: Split | None = None

    def topics(self, reported: PositionsOfGroups) -> frozenset[str]:
        """The topics in which there are positions."""
        if reported != self._last:
            self._last, self._split = reported, None
            self._topics = frozenset(key[0] for positions in reported.values() for key in positions)
        return self._topics

    def split(
        self, reported: PositionsOfGroups, topics: Set[str], since: Mapping[TopicAndPartition, int]
    ) -> Split:
        """Split positions by whether they are in these topics, and not behind the offset since
        which the log of their partition is another one."""
        self.topics(reported)
        if self._split is None or (topics, since) != self._within:
            everything = {
                (group, *place): position
                for group, positions in reported.items()
                for place, position in positions.items()
            }
            committed = {
                key: at
                for key, at in everything.items()
                if key[1] in topics and at.offset <= since.get(key[1:], at.offset)
            }
            places = frozenset(key[1:] for key in committed)
            self._within = topics, since
            self._split = Split(committed, places, everything.keys() - committed.keys())
        return self._split
