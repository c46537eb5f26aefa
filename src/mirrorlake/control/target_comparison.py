"""Which generations of its target topics a flow may write to now, by Kafka's topic ids. Pure.

A target topic that is deleted, and perhaps made again under its name, loses its records, and its
offsets start over: the map of the old topic is not true of the new one. Kafka does not notify
clients. So each generation of a target topic is noted with its id before the flow's first write to
it, and a topic that has another id, or is gone, gets no record until an operator has decided.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from mirrorlake.offsets.generations import BEGINNINGS, Begins, NotedTarget, TargetDecision


@dataclass(frozen=True)
class TargetLoss:
    """The unreported end of a target topic's generation. Not `made_again`: the topic is gone."""

    topic: str
    target_topic: str
    generation: int
    made_again: bool


@dataclass(frozen=True)
class TargetComparison:
    """The outcome, by source topic.

    `living` may be produced to; `begin` has the number of the generation to note before that, and
    where it begins, whether or not the topic exists yet; `waiting` and `stopped` topics get
    nothing. `unfounded` topics have an incident although the target topic is the noted one, or an
    open one about an earlier target topic.
    """

    living: Mapping[str, NotedTarget]
    begin: Mapping[str, tuple[int, Begins]]
    losses: tuple[TargetLoss, ...]
    waiting: frozenset[str]
    stopped: frozenset[str]
    unfounded: frozenset[str]

    @property
    def decided(self) -> frozenset[str]:
        """Topics for which an operator has decided how the next generation begins."""
        return frozenset(topic for topic, (number, _) in self.begin.items() if number > 0)


def compare_targets(
    names: Mapping[str, str],
    ids: Mapping[str, str],
    missing: Collection[str],
    noted: Mapping[str, NotedTarget],
    decisions: Iterable[TargetDecision],
) -> TargetComparison:
    """Compare target topics with the noted ones.

    Args:
        names: target topics by source topic.
        ids: Kafka's ids of those that the target has now.
        missing: those that it lacks; topics in neither were not reported (a missing right), and
            counts as unchanged.
        noted: the newest generation of each target topic.
        decisions: the decisions of operators, oldest first.
    """
    choices = {
        (decision.topic, decision.target, decision.generation): decision.resolution
        for decision in decisions
    }
    open_topics = {
        topic: target for (topic, target, _), choice in choices.items() if choice is None
    }
    living: dict[str, NotedTarget] = {}
    begin: dict[str, tuple[int, Begins]] = {}
    losses: list[TargetLoss] = []
    waiting, stopped, unfounded = set(), set(), set()
    for topic, target in names.items():
        is_known = target in ids or target in missing
        known = noted.get(target)
        if known is None:
            begin[topic] = (0, "stage")
            continue
        key = (topic, target, known.number)
        if key not in choices:
            key = (topic, "", known.number)
        if choices.get(key) == "stop":
            stopped.add(topic)
        elif known.topic_id and ids.get(target) == known.topic_id:
            living[topic] = known
            other = open_topics.get(topic, "")
            if choices.get(key, "") in (None, *BEGINNINGS) or other not in ("", target):
                unfounded.add(topic)
        elif not is_known and known.topic_id and choices.get(key, "") not in (None, *BEGINNINGS):
            living[topic] = known
        elif (choice := choices.get(key)) in BEGINNINGS:
            begin[topic] = (known.number + 1, BEGINNINGS[str(choice)])
        else:
            waiting.add(topic)
            if key not in choices or choice is not None:
                losses.append(TargetLoss(topic, target, known.number, target in ids))
    return TargetComparison(
        living,
        begin=begin,
        losses=tuple(losses),
        waiting=frozenset(waiting),
        stopped=frozenset(stopped),
        unfounded=frozenset(unfounded),
    )
