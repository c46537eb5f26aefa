"""The plan of a source's next landing query, by `landing/plan.py`, and what is known beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirrorlake.lake.retention import Removal
from mirrorlake.landing.source_comparison import CurrentGenerations, LandingPlan, Loss, SourceTopic
from mirrorlake.offsets.positions import LogEnds, TopicAndPartition


@dataclass(frozen=True)
class Planned:
    """A plan, and what it was made of.

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
