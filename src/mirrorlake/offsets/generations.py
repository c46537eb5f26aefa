"""Generations of source topics and of target topics: each begins when a topic is made, or made
again; one of a source partition also when its log went back. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Literal

from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition


@dataclass(frozen=True)
class Begun:
    """A generation of a source topic; with a partition, one that this began by itself, from
    `first_offset` on. `id` names it for ever; a restored lake may assign its number again."""

    topic: str
    generation: int
    partition: int | None = None
    first_offset: int | None = None
    id: str = ""


GenerationIds = tuple[tuple[int, str], ...]
"""All generations that a lake knows of a partition, as (number, id)."""


def number_of(known: GenerationIds, number: int, id_: str) -> int | None:
    """The number that a lake has for the generation of a position, which was written with a number
    and an id; None where the lake does not know that generation. Where either has no id, the number
    is all that is known."""
    if not id_ or not known or {(number, id_), (number, "")} & {*known}:
        return number
    same = [own for own, own_id in known if own_id == id_]
    return same[0] if len(same) == 1 else None


class SourceGenerations:
    """All generations that the topics of a source cluster have had."""

    def __init__(self, begun: Iterable[Begun] = ()) -> None:
        self._of_topics: dict[str, list[Begun]] = defaultdict(list)
        self._of_partitions: dict[TopicAndPartition, list[Begun]] = defaultdict(list)
        for one in begun:
            if one.partition is None:
                self._of_topics[one.topic].append(one)
            else:
                self._of_partitions[one.topic, one.partition].append(one)

    def newest(self, key: TopicAndPartition) -> int:
        """The newest generation of a partition."""
        return max((begun.generation for begun in self._of(key)), default=0)

    def living(self, place: PartitionGeneration, offset: int) -> int:
        """The place of a position in the newest generation of a partition: the same offset as long
        as the log is the same up to there, else the start of the log that replaced it."""
        later = (
            one for one in self._of(place.topic_partition) if one.generation > place.generation
        )
        return min([offset, *(one.first_offset or 0 for one in later)])

    def is_gone(self, place: PartitionGeneration, offset: int) -> bool:
        """Whether a position does not exist in the newest generation of a partition: another log
        has replaced its own, from an earlier offset on."""
        return self.living(place, offset) != offset

    def ids(self, key: TopicAndPartition) -> GenerationIds:
        """The generations of a partition, each with the id that is known outside of the lake."""
        return tuple((begun.generation, begun.id) for begun in self._of(key))

    def _of(self, key: TopicAndPartition) -> Iterable[Begun]:
        return chain(self._of_topics.get(key[0], ()), self._of_partitions.get(key, ()))


@dataclass(frozen=True)
class TargetGeneration:
    """One generation of a target topic, which begins when the topic is made or made again.

    `counts_from` is the oldest target generation whose part of the map counts as produced: the
    number itself where the topic is to get all that the stage holds. `began` are the log ends of
    its partitions before the flow's first write. `topic_id` is Kafka's, empty if unknown.
    """

    number: int = 0
    counts_from: int = 0
    began: tuple[int, ...] = ()
    topic_id: str = ""

    @property
    def gets_the_stage(self) -> bool:
        """Whether the topic was made again, and gets what the stage holds: as long as nothing is
        mapped, it lacks only what was deleted since it began."""
        return self.counts_from == self.number > 0


FIRST = TargetGeneration()


Begins = Literal["stage", "end"]


#: An operator's choices for a target topic that is gone or was made again, beside `stop`, and where
#: the next generation then begins.
BEGINNINGS: Mapping[str, Begins] = {"again": "stage", "continue": "end"}


@dataclass(frozen=True)
class NotedTarget:
    """One generation of a target topic, as noted: `number` counts from 0, and `topic_id` is Kafka's
    id of the topic (no topic has the empty one: the id was not noted in time).

    It `begins` with all that the stage holds ('stage'), or with what the generation before it has
    not got ('end'). `began` are the log ends of its partitions before the flow's first write, and
    `noted_at` is when it was noted; None if it is not noted yet.
    """

    number: int
    topic_id: str
    begins: Begins = "stage"
    began: tuple[int, ...] = ()
    noted_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TargetDecision:
    """The end of one generation of a source topic's target topic; `resolution` is None while no
    operator has decided. `target` names the target topic, unless an earlier version noted it."""

    topic: str
    generation: int
    resolution: str | None
    target: str = ""


def counts_from(generations: Iterable[NotedTarget]) -> int:
    """The oldest generation of a target topic whose part of the map counts as produced, given all
    generations of it: the newest one that got all that the stage held."""
    return max((target.number for target in generations if target.begins == "stage"), default=0)


def newest_of(generations: Sequence[NotedTarget]) -> TargetGeneration:
    """The last of all generations of a target topic, in order."""
    last = generations[-1]
    return TargetGeneration(last.number, counts_from(generations), last.began, last.topic_id)
