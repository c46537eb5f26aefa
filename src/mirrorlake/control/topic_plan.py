"""The difference between the topics that a flow wants on its target and those there. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from mirrorlake.lake.changes import Change
from mirrorlake.naming.policy import check_topic_name
from mirrorlake.naming.selection import TopicSelection

Action = Literal["create", "add_partitions", "none", "refuse"]


class Observed(Protocol):
    """A topic as a cluster describes it."""

    @property
    def partitions(self) -> int:
        """How many partitions it has."""

    @property
    def factor(self) -> int:
        """Its replication factor."""


@dataclass(frozen=True)
class TopicPlan:
    """What one source topic needs on the target. `reason` is why the action is `refuse`; `note` is
    a remark about a topic that is made."""

    topic: str
    target_topic: str
    partitions: int
    factor: int
    action: Action
    reason: str = ""
    note: str = ""

    def row(self) -> Change:
        """This plan as a row of `changes`: done, or refused."""
        return Change(
            "partitions" if self.action == "add_partitions" else "topic",
            self.target_topic,
            None,
            f"partitions={self.partitions}, factor={self.factor}",
            outcome="refused" if self.action == "refuse" else "done",
            error=self.reason or None,
        )


def plan_topics(
    selection: TopicSelection,
    *,
    source: Mapping[str, Observed],
    target: Mapping[str, Observed],
    target_brokers: int,
    factor: int | None,
    left_out: Mapping[str, str] | None = None,
) -> list[TopicPlan]:
    """Compare both sides; one plan per selected topic, by name.

    Partition counts only grow; a target with more partitions is left as it is (docs/mm2.md, "New
    topics and partitions").

    Args:
        selection: which topics are mirrored, and how they are named.
        source, target: the topics of both sides.
        target_brokers: the upper bound of the factor, since a topic with more cannot be made
        (MirrorMaker 2 asks for 2 and fails).
        factor: replication factor of new topics; None: the source topic's own.
        left_out: why topics must not be mirrored (`checks.problem.left_out`).
    """
    plans = []
    for topic in sorted(source):
        if not selection.selects(topic):
            continue
        seen = source[topic]
        name = selection.naming.target_topic(topic)
        asked = factor or seen.factor
        wanted = min(asked, max(1, target_brokers))
        action, reason = _action(name, seen, target.get(name))
        if left_out and topic in left_out:
            action, reason = "refuse", left_out[topic]
        note = _lowered(asked, wanted) if action == "create" and wanted < asked else ""
        plans.append(
            TopicPlan(
                topic,
                name,
                partitions=seen.partitions,
                factor=wanted,
                action=action,
                reason=reason,
                note=note,
            )
        )
    return plans


def _action(name: str, seen: Observed, there: Observed | None) -> tuple[Action, str]:
    if reason := check_topic_name(name):
        return "refuse", f"its name on the target would be {name!r}, which is not allowed: {reason}"
    if there is None:
        return "create", ""
    return ("add_partitions", "") if there.partitions < seen.partitions else ("none", "")


def _lowered(asked: int, made: int) -> str:
    return (
        f"made with replication factor {made} instead of {asked}, since the target has no more "
        "brokers"
    )


def refusals(plans: Iterable[TopicPlan]) -> list[TopicPlan]:
    """The plans that cannot be carried out."""
    return [plan for plan in plans if plan.action == "refuse"]
