"""Where topics go when flows are chained: topic names followed through all flows. Pure.

A *cluster topic* is a topic on a cluster, a *step* is a flow that takes one to the next.
`checks.route_rules` refuses some shapes of routes: cycles, two ways to one topic, two topics that
become one, names that Kafka would refuse.
"""

import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.naming.policy import HEARTBEATS, check_topic_name
from mirrorlake.naming.selection import matches_any

STEP_LIMIT = 50_000
"""Steps that are followed in all, which takes seconds. A full mesh of ten clusters has millions
(default policy)."""


class ClusterTopic(NamedTuple):
    """A topic on a cluster, by its alias."""

    cluster: str
    topic: str


class Step(NamedTuple):
    """A flow takes a topic of its source to a topic of its target."""

    flow: str
    start: ClusterTopic
    end: ClusterTopic


@dataclass(frozen=True)
class Cycle:
    """Steps that form a cycle: the first could be taken again. `grows`: names differ each time."""

    steps: tuple[Step, ...]
    grows: bool


@dataclass(frozen=True)
class Double:
    """Two routes from one topic to another: each of its records would arrive twice."""

    origin: ClusterTopic
    first: tuple[Step, ...]
    second: tuple[Step, ...]


class Routes:
    """The routes of `flows`, between aliases that are all different clusters.

    Raises TopologyError if a custom policy fails.

    `arrivals` has, for the `real` origins followed so far, the steps that end at each topic, and
    the way by which a topic came to the start of the step (empty if it was there at first).
    """

    def __init__(self, flows: Sequence[ResolvedFlow]) -> None:
        self.arrivals: dict[ClusterTopic, dict[Step, tuple[Step, ...]]] = {}
        self._flows: dict[str, list[ResolvedFlow]] = {}
        for flow in flows:
            self._flows.setdefault(flow.source, []).append(flow)
        self._steps: dict[ClusterTopic, list[Step]] = {}
        self._count = 0

    @property
    def complete(self) -> bool:
        """Whether all was followed, and not cut off at STEP_LIMIT."""
        return self._count < STEP_LIMIT

    def steps(self, cluster_topic: ClusterTopic) -> list[Step]:
        """The flows that mirror this topic, each with the name it gives it, legal or not."""
        if cluster_topic not in self._steps:
            self._steps[cluster_topic] = [
                Step(
                    flow.name,
                    cluster_topic,
                    ClusterTopic(flow.target, flow.target_topic(cluster_topic.topic)),
                )
                for flow in self._flows.get(cluster_topic.cluster, ())
                if flow.selection.selects(cluster_topic.topic)
            ]
        return self._steps[cluster_topic]

    def follow(self, origin: ClusterTopic, real: bool = True) -> Iterator[Cycle | Double]:
        """Follow a topic to its routes' ends, breadth first; not `real`: it only might exist."""
        ways: dict[ClusterTopic, tuple[Step, ...]] = {origin: ()}
        queue = deque([origin])
        while queue and self.complete:
            way = ways[cluster_topic := queue.popleft()]
            for step in self.steps(cluster_topic):
                self._count += 1
                if real:
                    arrived = self.arrivals.setdefault(step.end, {})
                    arrived[step] = min(arrived.get(step, way), way, key=len)
                if check_topic_name(step.end.topic):
                    continue
                been = [one.start for one in way] + [cluster_topic]
                taken = [one.flow for one in way]
                if step.end in been:
                    yield Cycle((*way, step)[been.index(step.end) :], grows=False)
                elif step.flow in taken:
                    yield Cycle((*way, step)[taken.index(step.flow) : -1], grows=True)
                elif step.end in ways:
                    yield Double(origin, ways[step.end], (*way, step))
                else:
                    ways[step.end] = (*way, step)
                    queue.append(step.end)


def origins(
    flows: Sequence[ResolvedFlow], topics: Mapping[str, Collection[str]]
) -> tuple[list[ClusterTopic], list[ClusterTopic]]:
    """Where routes may begin: topics, by alias, and examples of names that the flows select.

    Examples show what would happen on an empty cluster once such a topic is made. One of them is
    `heartbeats`.
    """
    real = {ClusterTopic(alias, topic) for alias, names in topics.items() for topic in names}
    asked = {
        ClusterTopic(flow.source, name)
        for flow in flows
        for name in (
            HEARTBEATS,
            *(name for pattern in flow.settings.topics for name in examples(pattern)),
        )
    }
    return sorted(real), sorted(asked - real)


def examples(pattern: str) -> list[str]:
    """Topic names that a simple pattern matches, `ordersany` for `orders.*`; else none."""
    names = (
        re.sub(r"\.[*+]", "any", part).replace("\\", "") for part in pattern.strip("^$").split("|")
    )
    return sorted(
        {name for name in names if check_topic_name(name) is None and matches_any((pattern,), name)}
    )
