"""What landing may read of a source now: lost ranges, remade topics, and where to go on. Pure.

Kafka says nothing when retention overtakes a reader or a topic is made again under the same name; MirrorMaker 2 skips
or mixes silently (mm2.md 1.14). Here each is found by comparing what the source has with what was landed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Key = tuple[str, int]
LossKind = Literal["topic_recreated", "source_truncated"]


@dataclass(frozen=True)
class Life:
    """One life of a topic: its generation (from 0) and Kafka's id of it."""

    generation: int
    topic_id: str


@dataclass(frozen=True)
class Decision:
    """What is known of a loss, and what an operator said: `resolution` is None while nobody did."""

    topic: str
    partition: int | None
    kind: LossKind
    last_offset: int | None
    open: bool
    resolution: str | None


@dataclass(frozen=True)
class Loss:
    """Something lost that nobody knows of yet. Offsets are inclusive; None for a topic made again."""

    kind: LossKind
    topic: str
    partition: int | None = None
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True)
class Survey:
    """What follows: topics not to be read, news for the operators, lives seen first, and where each partition goes on
    (next offset; missing means from its start)."""

    blocked: frozenset[str]
    losses: tuple[Loss, ...]
    new_lives: Mapping[str, Life]
    starts: Mapping[Key, int]
    generations: Mapping[str, int] = field(default_factory=dict)


def survey(
    ids: Mapping[str, str],
    lives: Mapping[str, Life],
    landed: Mapping[Key, int],
    log_starts: Mapping[Key, int],
    decisions: Iterable[Decision],
    passed: Mapping[Key, int] | None = None,
) -> Survey:
    """Compare. `ids` are the selected topics now there, `landed` the next offset to land of each partition, in the
    newest life of its topic, and `log_starts` the first offset that the source still has. `passed` is how far landing
    was seen to have come, over transaction markers too: nothing below it is lost, but it is no place to go on from."""
    known = list(decisions)
    blocked = set(blocked_topics(known)) & set(ids)
    losses: list[Loss] = []
    for topic, topic_id in ids.items():
        if topic in lives and lives[topic].topic_id != topic_id:
            if topic not in blocked:
                losses.append(Loss("topic_recreated", topic))
            blocked.add(topic)
    accepted = accepted_starts(known)
    starts: dict[Key, int] = {}
    for key, offset in landed.items():
        if key[0] not in ids:
            continue
        start = max(offset, accepted.get(key, 0))
        first = log_starts.get(key, 0)
        if first > max(start, (passed or {}).get(key, 0)) and key[0] not in blocked:
            losses.append(Loss("source_truncated", key[0], key[1], start, first - 1))
        elif first <= start:
            starts[key] = start
    blocked |= {loss.topic for loss in losses}
    new = {topic: Life(0, topic_id) for topic, topic_id in ids.items() if topic not in lives}
    generations = {topic: life.generation for topic, life in lives.items() if life.generation and topic in ids}
    return Survey(frozenset(blocked), tuple(losses), new, starts, generations)


def blocked_topics(decisions: Collection[Decision]) -> frozenset[str]:
    """Topics that wait for an operator, or that an operator stopped."""
    return frozenset(item.topic for item in decisions if item.open or item.resolution == "stop")


def accepted_starts(decisions: Iterable[Decision]) -> dict[Key, int]:
    """Where partitions go on behind ranges whose loss was accepted."""
    found: dict[Key, int] = {}
    for item in decisions:
        if item.resolution == "continue" and item.partition is not None and item.last_offset is not None:
            key = (item.topic, item.partition)
            found[key] = max(found.get(key, 0), item.last_offset + 1)
    return found
