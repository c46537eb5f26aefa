"""Positions of groups split into those that a flow mirrors and others, once for each answer that
differs from the one before. Pure."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from mirrorlake.groups.checkpoint_plan import GroupPartition
from mirrorlake.offsets.positions import Committed, TopicAndPartition

#: By group and partition, as a cluster reported them.
PositionsOfGroups = Mapping[str, Mapping[TopicAndPartition, Committed]]


class Split(NamedTuple):
    """Positions in the given topics, their partitions, and the keys of all other positions."""

    committed: Mapping[GroupPartition, Committed]
    places: Set[TopicAndPartition]
    elsewhere: Set[GroupPartition]


class SplitPositions:
    """Caches what follows from a cluster's answer, which must not be modified: an equal answer
    yields the same objects. For one thread."""

    def __init__(self) -> None:
        self._last: PositionsOfGroups | None = None
        self._topics: frozenset[str] = frozenset()
        self._within: Set[str] = frozenset()
        self._split: Split | None = None

    def topics(self, reported: PositionsOfGroups) -> frozenset[str]:
        """The topics in which there are positions."""
        if reported != self._last:
            self._last, self._split = reported, None
            self._topics = frozenset(key[0] for positions in reported.values() for key in positions)
        return self._topics

    def split(self, reported: PositionsOfGroups, topics: Set[str]) -> Split:
        """Split positions by whether they are in these topics."""
        self.topics(reported)
        if self._split is None or topics != self._within:
            everything = {
                (group, *place): position
                for group, positions in reported.items()
                for place, position in positions.items()
            }
            committed = {key: at for key, at in everything.items() if key[1] in topics}
            places = frozenset(key[1:] for key in committed)
            self._within = topics
            self._split = Split(committed, places, everything.keys() - committed.keys())
        return self._split
