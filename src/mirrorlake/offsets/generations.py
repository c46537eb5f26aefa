"""Generations of a target topic: each begins when the topic is made, or made again. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class TargetGeneration:
    """One generation of a target topic, which begins when the topic is made or made again.

    `counts_from` is the oldest target generation whose part of the map counts as produced: the number itself where the
    topic is to get all that the stage holds. `began` are the log ends of its partitions before the flow's first write.
    """

    number: int = 0
    counts_from: int = 0
    began: tuple[int, ...] = ()


FIRST = TargetGeneration()


Begins = Literal["stage", "end"]


#: What an operator can decide about a target topic that is gone or was made again, beside `stop`, and where the next
#: generation then begins.
BEGINNINGS: Mapping[str, Begins] = {"again": "stage", "continue": "end"}


@dataclass(frozen=True)
class NotedTarget:
    """One generation of a target topic, as noted: `number` counts from 0, and `topic_id` is Kafka's id of the topic (no
    topic has the empty one: nobody noted the id in time).

    It `begins` with all that the stage holds ('stage'), or with what the generation before it has not got ('end').
    `began` are the log ends of its partitions before the flow's first write.
    """

    number: int
    topic_id: str
    begins: Begins = "stage"
    began: tuple[int, ...] = ()


@dataclass(frozen=True)
class TargetDecision:
    """What is known of the end of one generation of a target topic; `resolution` is None while nobody has decided."""

    topic: str
    generation: int
    resolution: str | None


def counts_from(generations: Iterable[NotedTarget]) -> int:
    """The oldest generation of a target topic whose part of the map counts as produced, given all generations of it:
    the newest one that got all that the stage held."""
    return max((item.number for item in generations if item.begins == "stage"), default=0)
