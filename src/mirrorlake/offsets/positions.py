"""A partition, and what can be said of positions in it. Pure."""

from dataclasses import dataclass
from typing import NamedTuple

TopicAndPartition = tuple[str, int]
"""A partition by its topic and its number (`TopicPartition` of Kafka's clients, without more)."""


@dataclass(frozen=True)
class LogEnds:
    """What the source has of a partition: the first offset still there, the offset after the last one, and the epoch of
    its leader (None where the cluster does not report it)."""

    start: int
    end: int
    epoch: int | None = None


class Committed(NamedTuple):
    """A position that a group committed: the next offset that it reads, and the text it left with it."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True)
class Translated:
    """Where a position leads on the other cluster.

    Not `exact`: not replicated yet, and `offset` is the highest safe position. `ahead`: a mapped record lies at or
    behind the position. `mapped`: a record of the topic was mapped at all. `end`: where the map of the partition ends,
    on the side that the position is from. `again`: how many records behind `offset` at most were read before; only a
    topic that two flows share has some.
    """

    topic: str
    partition: int
    offset: int
    exact: bool
    ahead: bool = True
    mapped: bool = True
    end: int = 0
    again: int = 0


@dataclass(frozen=True)
class Reached:
    """How far a flow is in a partition, of its own knowledge: produced up to `produced_end` (transaction markers too),
    of which the map must have what is before `mapped_end`, in this generation of the target topic."""

    produced_end: int
    mapped_end: int
    target_topic: str
    target_generation: int = 0
