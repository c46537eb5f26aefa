"""Bounds translated positions to readable offsets. Pure.

The map knows where a record went, but not if it is there. A consumer with a position in front of
the log, or behind its end, follows `auto.offset.reset`, which by default skips all records there.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from mirrorlake.offsets.positions import (
    LogEnds,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)

#: Queries offsets of partitions; those that a cluster lacks or does not answer for are missing.
AskOffsets = Callable[[Collection[TopicAndPartition]], Mapping[TopicAndPartition, int]]
Key = TypeVar("Key")


@dataclass(frozen=True)
class Sides:
    """Queries about both sides of a route: translations, log starts and ends (high watermarks) at
    the origin, where positions are from, and logs at the goal, where they lead."""

    translate: Callable[
        [Collection[TopicPartitionOffset]], Mapping[TopicPartitionOffset, Translated]
    ]
    origin_starts: AskOffsets
    origin_ends: AskOffsets
    goal_logs: Callable[[Collection[TopicAndPartition]], Mapping[TopicAndPartition, LogEnds]]


def readable_positions(
    asked: Collection[TopicPartitionOffset], sides: Sides
) -> dict[TopicPartitionOffset, Translated]:
    """Translate positions into readable ones at the goal. Positions without a translation are left
    out; in a partition that the goal lacks or does not answer for, the map's position stands.

    The origin is queried only for partitions that need it: where a position is ahead of what is
    mirrored, since it may lie behind the log's end, and where records are gone at the goal, since
    they may be gone at the origin too.
    """
    translated = dict(sides.translate(asked))
    translated.update(
        _behind_all(
            {key: position for key, position in translated.items() if not position.exact}, sides
        )
    )
    there = bounded(translated, sides)
    return there | _lost_at_both(
        {key: position for key, position in there.items() if position.gone}, translated, sides
    )


def bounded(translated: Mapping[Key, Translated], sides: Sides) -> dict[Key, Translated]:
    """Bound positions at the goal, however they were translated, to its logs. In partitions that
    the goal lacks or does not answer for they stay as they are."""
    places = {(position.topic, position.partition) for position in translated.values()}
    logs = sides.goal_logs(places) if places else {}
    return {
        key: within(position, logs.get((position.topic, position.partition)))
        for key, position in translated.items()
    }


def _behind_all(
    translated: Mapping[TopicPartitionOffset, Translated], sides: Sides
) -> dict[TopicPartitionOffset, Translated]:
    """Replace positions behind their log's end by that end: nothing behind it was read."""
    ends = (
        sides.origin_ends({(topic, partition) for topic, partition, _ in translated})
        if translated
        else {}
    )
    behind = {
        key: ends[key[:2]] for key in translated if key[:2] in ends and key[2] > ends[key[:2]]
    }
    at_ends = sides.translate({(*key[:2], end) for key, end in behind.items()}) if behind else {}
    return {
        key: replace(at_ends.get((*key[:2], end), translated[key]), past=end)
        for key, end in behind.items()
    }


def within(position: Translated, log: LogEnds | None) -> Translated:
    """Bound a position at the goal to its log there, if that is known."""
    if log is None:
        return position
    if position.offset < log.start:
        # Without a mapped record behind the position nothing is gone: what lay there were markers,
        # or records that the flow did not write.
        return replace(
            position,
            offset=log.start,
            gone=position.gone + (log.start - position.offset if position.ahead else 0),
            trimmed=position.trimmed + log.start - position.offset,
        )
    if position.offset > log.end:
        return replace(position, offset=log.end, cut=position.cut + position.offset - log.end)
    return position


def _lost_at_both(
    lost: Mapping[TopicPartitionOffset, Translated],
    mapped: Mapping[TopicPartitionOffset, Translated],
    sides: Sides,
) -> dict[TopicPartitionOffset, Translated]:
    """For positions with records gone at the goal: leave out those that are gone at the origin too,
    since their consumers would miss them there as well."""
    starts = (
        sides.origin_starts({(topic, partition) for topic, partition, _ in lost}) if lost else {}
    )
    ahead = {key: starts[key[:2]] for key in lost if key[:2] in starts and key[2] < starts[key[:2]]}
    at_starts = (
        sides.translate({(*key[:2], start) for key, start in ahead.items()}) if ahead else {}
    )
    still_lost = {}
    for key, start in ahead.items():
        first = at_starts.get((*key[:2], start))
        if first is not None:
            missed = lost[key].offset - max(mapped[key].offset, first.offset) if first.ahead else 0
            still_lost[key] = replace(lost[key], gone=first.gone + max(0, missed))
    return still_lost
