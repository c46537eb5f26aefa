"""Positions at the source of a flow that belong to another log than the one in its map, as far as
the lake knows: landing reports that some seconds after it happened, or when it begins."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mirrorlake.lake.reader import Reader
from mirrorlake.offsets.generations import Begun, SourceGenerations
from mirrorlake.offsets.positions import (
    PartitionGeneration,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)

NOT_REPLICATED = "not replicated yet; this is the highest safe position"


def begun_from(lake: Reader, alias: str) -> tuple[Begun, ...]:
    """All generations that topics of a source cluster, and partitions by themselves, have begun."""
    return tuple(Begun(**row) for row in lake.query_rows("generation_begins", source_cluster=alias))


def source_generations(lake: Reader, flow: str) -> SourceGenerations:
    """The generations of topics at the source of a flow, by the flow's name."""
    return SourceGenerations(begun_from(lake, flow.partition("->")[0]))


@dataclass(frozen=True)
class OtherLogs:
    """What waits for an operator's decision, or was stopped by one: the `topics` that were made
    again, and, for partitions whose log went back, the offset `since` which the log is another
    one."""

    alias: str
    topics: frozenset[str]
    since: Mapping[TopicAndPartition, int]

    def why(self, position: TopicPartitionOffset) -> str | None:
        """Why a source position has no counterpart that means the same; None if it has one."""
        topic, partition, offset = position
        if topic in self.topics:
            return f"topic {topic}: {made_again(self.alias)}"
        first = self.since.get((topic, partition), offset)
        return f"{topic}-{partition}: {went_back(self.alias, first)}" if offset > first else None

    def have(self, position: TopicPartitionOffset) -> bool:
        """Whether a position at the source lies in one of them."""
        topic, partition, offset = position
        return topic in self.topics or offset > self.since.get((topic, partition), offset)

    def joined(self, others: "OtherLogs") -> "OtherLogs":
        """These and others of the same source."""
        first = {key: min(at, self.since.get(key, at)) for key, at in others.since.items()}
        return OtherLogs(self.alias, self.topics | others.topics, {**self.since, **first})


def other_logs(lake: Reader, flow: str) -> OtherLogs:
    """The other logs at the source of a flow, by the flow's name."""
    alias = flow.partition("->")[0]
    rows = lake.query_rows("source_decisions", source_cluster=alias, prefix=f"{alias}->")
    return noted_logs(alias, (row for row in rows if row["open"] or row["resolution"] == "stop"))


def noted_logs(alias: str, incidents: Iterable[Mapping[str, Any]]) -> OtherLogs:
    """The other logs at a source by incidents that are open or stopped."""
    topics, since = set[str](), dict[TopicAndPartition, int]()
    for row in incidents:
        if row["kind"] == "topic_recreated":
            topics.add(row["topic"])
        elif row["kind"] == "source_rewound":
            key = (row["topic"], row["partition"])
            first = row["first_offset"] or 0
            since[key] = min(first, since.get(key, first))
    return OtherLogs(alias, frozenset(topics), since)


def made_again(alias: str) -> str:
    """Why positions in a topic that was made again mean nothing until an operator has decided."""
    return (
        f"it was made again at cluster {alias} since it was mirrored, and no position there means "
        "what it did; run the flow, and decide with mirrorlake resolve"
    )


def went_back(alias: str, offset: int) -> str:
    """Why positions behind an offset mean nothing, where the log of a partition went back to it."""
    return (
        f"its log went back at cluster {alias} since it was mirrored, and is another one from "
        f"offset {offset} on; run the flow, and decide with mirrorlake resolve"
    )


def inexact_reasons(
    lake: Reader, flow: str, translated: Mapping[TopicPartitionOffset, Translated], reverse: bool
) -> dict[TopicPartitionOffset, str]:
    """Why some translated positions are not exact. The law knows what was mirrored, and not whether
    the source still has the log that it was mirrored from."""
    others = other_logs(lake, flow)
    gone = _gone(lake, flow, translated) if reverse else {}
    reasons = {}
    for key, there in translated.items():
        at_source = (there.topic, there.partition, there.offset) if reverse else key
        why = others.why(at_source) or gone.get(key)
        if why is not None or not there.exact:
            reasons[key] = why or NOT_REPLICATED
    return reasons


def _gone(
    lake: Reader, flow: str, translated: Mapping[TopicPartitionOffset, Translated]
) -> dict[TopicPartitionOffset, str]:
    """Why positions that lead to the source are not exact where they are in a log that another one
    has replaced, as an operator has decided."""
    known = source_generations(lake, flow)
    reasons = {}
    for key, there in translated.items():
        if there.generation is None:
            continue
        place = PartitionGeneration(there.topic, there.partition, there.generation)
        if known.is_gone(place, there.offset):
            reasons[key] = (
                f"{there.topic}-{there.partition}: this is the offset in a log that is gone there; "
                "another one has taken its place since"
            )
    return reasons
