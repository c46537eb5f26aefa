"""What landing may read of a source now: lost and rewound ranges, recreated topics, where each
partition goes on. Pure.

Kafka reports nothing when retention overtakes a reader, when a topic is made again under the same
name, or when the end of a log goes back; MirrorMaker 2 skips or mixes silently (docs/mm2.md,
"Restarts and losses"). This module compares the source's content with what was landed. A partition
goes on where the stage ends, by nothing else (DESIGN.md, "The stage is the truth").
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from mirrorlake.lake.retention import Removal
from mirrorlake.offsets.positions import LogEnds, PartitionGeneration, TopicAndPartition

LossKind = Literal["topic_recreated", "source_truncated", "source_rewound"]


@dataclass(frozen=True)
class SourceTopic:
    """A topic as the source shows it now: Kafka's id, its partition count, the partitions without a
    leader, and whether it may be read. A topic that is listed but not described has neither id nor
    partitions, and a reason, which does not count in comparisons."""

    topic_id: str
    partitions: int
    leaderless: frozenset[int] = frozenset()
    readable: bool = True
    undescribed: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TopicGeneration:
    """One generation of a topic: its number (from 0) and Kafka's id of it."""

    generation: int
    topic_id: str


@dataclass(frozen=True)
class Branch:
    """A generation that a partition began by itself: from `first` on, the log is another one."""

    generation: int
    first: int


@dataclass(frozen=True)
class CurrentGenerations:
    """The newest generation of every topic, and of partitions with one newer than that."""

    topics: Mapping[str, TopicGeneration] = field(default_factory=dict)
    branches: Mapping[TopicAndPartition, Branch] = field(default_factory=dict)

    def generation(self, key: TopicAndPartition) -> int:
        """The generation in which a partition's records are staged now."""
        newest = self.branches.get(key) or self.topics.get(key[0])
        return 0 if newest is None else newest.generation

    def place(self, key: TopicAndPartition) -> PartitionGeneration:
        """The partition with that generation."""
        return PartitionGeneration(*key, self.generation(key))

    def newest(self, topic: str) -> int:
        """The newest generation of any of a topic's partitions."""
        of_all = self.topics.get(topic, TopicGeneration(0, "")).generation
        return max(of_all, self._newest_branches.get(topic, 0))

    @cached_property
    def _newest_branches(self) -> Mapping[str, int]:
        """The newest generation that a partition of each topic began by itself."""
        newest: dict[str, int] = {}
        for (topic, _), branch in self.branches.items():
            newest[topic] = max(newest.get(topic, 0), branch.generation)
        return newest


NO_GENERATIONS = CurrentGenerations()
"""Of a cluster of which nothing is known."""


@dataclass(frozen=True)
class LandingPlan:
    """What one landing query of a cluster reads: the next offset of every partition, and the
    generations that are not 0. `newest_batch` is the highest number of a staged batch, -1 for none:
    the query numbers its batches above it."""

    alias: str
    starts: Mapping[TopicAndPartition, int]
    generations: Mapping[TopicAndPartition, int] = field(default_factory=dict)
    newest_batch: int = -1

    @property
    def assigned(self) -> str:
        """The partitions as a text, by topic; equal for equal partitions."""
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(self.starts):
            topics.setdefault(topic, []).append(partition)
        return json.dumps(topics, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class Decision:
    """A known loss and an operator's decision: `resolution` is None while there is none."""

    topic: str
    partition: int | None
    kind: LossKind
    last_offset: int | None
    open: bool
    resolution: str | None


@dataclass(frozen=True)
class Loss:
    """A loss in a generation. Offsets are inclusive, and None for a topic that was made again."""

    kind: LossKind
    topic: str
    partition: int | None = None
    first: int | None = None
    last: int | None = None
    generation: int = 0


@dataclass(frozen=True)
class SourceComparison:
    """The outcome of a comparison: the partitions of `log` that wait for an operator, the new
    losses to report, what was lost behind a loss that operators have accepted, and the next offset
    of each partition that is read."""

    waiting: frozenset[TopicAndPartition]
    losses: tuple[Loss, ...]
    given_up: tuple[Loss, ...]
    starts: Mapping[TopicAndPartition, int]


def recreated(
    ids: Mapping[str, str], current: CurrentGenerations, decisions: Iterable[Decision]
) -> tuple[Loss, ...]:
    """Topics whose id differs from their newest generation's, without those already reported."""
    reported = {
        decision.topic
        for decision in decisions
        if decision.kind == "topic_recreated" and waits(decision)
    }
    return tuple(
        Loss("topic_recreated", topic, generation=current.topics[topic].generation)
        for topic, topic_id in sorted(ids.items())
        if topic in current.topics
        and current.topics[topic].topic_id != topic_id
        and topic not in reported
    )


def compare_source(
    log: Mapping[TopicAndPartition, LogEnds],
    positions: Mapping[TopicAndPartition, int],
    decisions: Collection[Decision],
    *,
    seen: Mapping[TopicAndPartition, int],
    rewound: Mapping[TopicAndPartition, int],
    begins: Mapping[TopicAndPartition, int],
    made_again: Collection[TopicAndPartition] = (),
) -> SourceComparison:
    """Compare the source's content with what was landed, partition by partition.

    Args:
        log: the offsets that the source has.
        positions: the next offsets by the stage; a partition without one is new, and begins where
            its log does: what was gone before was never ours.
        decisions: what operators decided.
        seen: how far landing was seen to have come, over transaction markers and in partitions
            without records: nothing below it is lost, but it is no place to go on from.
        begins: the first offsets of partitions without a position, if not the starts of their logs:
            offsets below were not asked for, and a loss from there on is one.
        rewound: the offset from which on a partition's log differs from what is staged.
        made_again: partitions of topics that were made again: if nothing of one was landed yet,
            what its log has lost already is given up by the decision to go on with it.
    """
    accepted = accepted_starts(decisions)
    topics, partitions = blocked(decisions)
    waiting = {key for key in log if key[0] in topics or key in partitions}
    losses: list[Loss] = []
    given_up: list[Loss] = []
    starts: dict[TopicAndPartition, int] = {}
    for key, ends in log.items():
        if key in waiting:
            continue
        begin = 0 if key in positions else min(begins.get(key, 0), ends.end)
        known = [place[key] for place in (positions, seen) if key in place] + [begin] * (begin > 0)
        is_ours = known or key in accepted or key in made_again
        owed = max([*known, accepted.get(key, 0)]) if is_ours else ends.start
        if key in rewound:
            losses.append(Loss("source_rewound", *key, rewound[key], positions[key] - 1))
            waiting.add(key)
            continue
        if ends.start > owed:
            loss = Loss("source_truncated", *key, owed, ends.start - 1)
            # Nothing was landed since the loss that was accepted, or since the decision about a
            # topic that was made again: the same loss has grown.
            if not known or accepted.get(key, -1) > max(known):
                given_up.append(loss)
            else:
                losses.append(loss)
                waiting.add(key)
                continue
        starts[key] = max(positions.get(key, begin), accepted.get(key, 0), ends.start)
    return SourceComparison(frozenset(waiting), tuple(losses), tuple(given_up), starts)


def waits(decision: Decision) -> bool:
    """Whether a loss waits for an operator, or an operator stopped the topic or partition."""
    return decision.open or decision.resolution == "stop"


def blocked(decisions: Iterable[Decision]) -> tuple[frozenset[str], frozenset[TopicAndPartition]]:
    """The topics and the partitions that wait for an operator, or that an operator stopped."""
    waiting = [decision for decision in decisions if waits(decision)]
    topics = frozenset(decision.topic for decision in waiting if decision.partition is None)
    return topics, frozenset(
        (decision.topic, decision.partition)
        for decision in waiting
        if decision.partition is not None
    )


def accepted_starts(decisions: Iterable[Decision]) -> dict[TopicAndPartition, int]:
    """Where partitions go on behind ranges whose loss an operator accepted."""
    starts: dict[TopicAndPartition, int] = {}
    for decision in decisions:
        if (
            decision.resolution == "continue"
            and decision.partition is not None
            and decision.last_offset is not None
        ):
            key = (decision.topic, decision.partition)
            starts[key] = max(starts.get(key, 0), decision.last_offset + 1)
    return starts


def position_of(
    key: TopicAndPartition,
    current: CurrentGenerations,
    staged: Mapping[TopicAndPartition, tuple[int, int]],
) -> int | None:
    """The next offset of a partition, from `staged`: (generation, next offset). None if its newest
    generation has nothing staged, and is no branch with a first offset."""
    generation, position = staged.get(key, (-1, 0))
    if generation == current.generation(key):
        return position
    branch = current.branches.get(key)
    return None if branch is None else branch.first


@dataclass(frozen=True)
class Planned:
    """The plan of a source's next query, by `landing/plan.py`, and what it was made of.

    `losses` are new; `given_up` was lost behind a loss that an operator accepted. `refused` are
    partitions that are left out for now, with the reason. `denied` are topics that are listed but
    not described, or that were read before and are no longer listed, with the reason; None if they
    may not even be seen. `unanswered` are those of the partitions for which the cluster did not
    answer. `open` names what has waited for an operator since before, and `waiting` are all topics
    and partitions that wait for one, or that one stopped. `covered` is how far queries before this
    one came, as far as that still holds. `passed_over` is what no flow wants that reads from here
    now, and what will not be in the stage.
    """

    plan: LandingPlan
    topics: Mapping[str, SourceTopic]
    log: Mapping[TopicAndPartition, LogEnds]
    losses: tuple[Loss, ...]
    given_up: tuple[Loss, ...]
    refused: Mapping[TopicAndPartition, str]
    unanswered: frozenset[TopicAndPartition]
    current_generations: CurrentGenerations
    open: frozenset[str]
    waiting: tuple[frozenset[str], frozenset[TopicAndPartition]]
    covered: Mapping[TopicAndPartition, int]
    passed_over: tuple[Removal, ...] = ()
    denied: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def leaderless(self) -> bool:
        """Whether a partition is left out because it has no leader, or none that answers."""
        return bool(self.unanswered) or any(topic.leaderless for topic in self.topics.values())

    def explains(self, failed: LandingPlan, covered: Mapping[TopicAndPartition, int]) -> bool:
        """Whether a failed query could not have gone on: something it read is gone, or lost."""
        return any(
            key not in self.plan.starts or self.log[key].start > max(start, covered.get(key, 0))
            for key, start in failed.starts.items()
        )
