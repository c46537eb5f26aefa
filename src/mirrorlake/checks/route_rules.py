"""Rules about topic names: cycles, records that would arrive twice, topics that become one, names
that are too long. Pure.

All of them look at where each topic goes through all flows together (`checks.routes`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from mirrorlake.checks.problem import Problem
from mirrorlake.checks.routes import STEP_LIMIT, ClusterTopic, Cycle, Double, Routes, Step, origins
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.naming.policy import check_topic_name


def check_routes(
    routes: Routes, flows: Sequence[ResolvedFlow], topics: Mapping[str, Collection[str]]
) -> list[Problem]:
    """Check where all topics go by the flows' `routes`. Raises TopologyError of custom policies."""
    real, asked = origins(flows, topics)
    # Examples first: they are few, and show what flows do even with too many topics to follow.
    supposed = [one for origin in asked for one in routes.follow(origin, real=False)]
    loops = [one for origin in real for one in routes.follow(origin)] + supposed
    say = _Words(flows)
    problems = [
        *_cycles(say, [one for one in loops if isinstance(one, Cycle)]),
        *_doubles(say, [one for one in loops if isinstance(one, Double)]),
        *_too_long(say, routes),
        *_meetings(say, routes, {one.second[-1].end for one in loops if isinstance(one, Double)}),
    ]
    return problems if routes.complete else [*problems, _cut_off(flows)]


class _Words:
    """The parts of sentences: flows by name, and topics in words."""

    def __init__(self, flows: Sequence[ResolvedFlow]) -> None:
        self.flows = {flow.name: flow for flow in flows}

    def topic(self, cluster_topic: ClusterTopic) -> str:
        return f"topic {cluster_topic.topic} of cluster {cluster_topic.cluster}"

    def topics(self, cluster_topics: Iterable[ClusterTopic]) -> str:
        """The first of some topics, which may repeat, and how many others there are."""
        first, *others = dict.fromkeys(cluster_topics)
        return self.topic(first) + (
            f" (and {_count(len(others), 'other topic')})" if others else ""
        )


def _cycles(say: _Words, cycles: Sequence[Cycle]) -> Iterator[Problem]:
    """Flows that form a cycle: harmless only if each knows where a record was (provenance)."""
    groups: dict[tuple[tuple[str, ...], bool], list[Cycle]] = {}
    for one in cycles:
        groups.setdefault((tuple(sorted({step.flow for step in one.steps})), one.grows), []).append(
            one
        )
    for (names, grows), group in groups.items():
        about = say.topics(one.steps[0].start for one in group)
        without = [name for name in names if say.flows[name].settings.provenance == "none"]
        strips = [name for name in names if say.flows[name].settings.provenance == "strip"]
        if grows:
            yield Problem(
                "endless-names",
                "refuse",
                names,
                group[0].steps[0].start.topic,
                sentence=f"{about} would be mirrored in a loop by {_and(names)}, under a longer "
                "name each time",
                fix="give these flows the same policy and replication_policy_separator, or topics "
                "that do not overlap; a policy of your own must know by source_of and "
                "upstream_topic the names that remote_topic gives",
            )
        elif without:
            yield Problem(
                "round",
                "refuse",
                names,
                group[0].steps[0].start.topic,
                sentence=f"records of {about} would loop forever through {_and(names)}, since "
                "their names do not say where they have been",
                fix=f"set provenance: headers on {_and(without + strips)}, or policy: default, or "
                "give these flows topics that do not overlap",
            )
        elif strips:
            yield Problem(
                "strip-in-round",
                "refuse",
                names,
                group[0].steps[0].start.topic,
                sentence=f"records of {about} loop through {_and(names)}, and {_and(strips)} would "
                "strip the header that stops them",
                fix=f"set provenance: headers on {_and(strips)}",
            )


def _doubles(say: _Words, doubles: Sequence[Double]) -> Iterator[Problem]:
    """Two ways from one topic to one target topic; provenance is no help: neither was there."""
    groups: dict[tuple[str, ...], list[Double]] = {}
    for one in doubles:
        last = (one.first[-1].flow, one.second[-1].flow)
        groups.setdefault(tuple(sorted(set(last))), []).append(one)
    for names, group in groups.items():
        one = group[0]
        yield Problem(
            "twice",
            "refuse",
            names,
            one.second[-1].end.topic,
            sentence=f"each record of {say.topics(each.origin for each in group)} would arrive "
            f"twice in {say.topic(one.second[-1].end)}: by {_way(one.first)} and by "
            f"{_way(one.second)}",
            fix="exclude these topics from one of the two ways with topics_exclude, or use "
            "policy: default",
        )


def _too_long(say: _Words, routes: Routes) -> Iterator[Problem]:
    """Names that Kafka would refuse, at the first hop or at a later one."""
    for end in sorted(end for end in routes.arrivals if check_topic_name(end.topic)):
        for step, way in sorted(routes.arrivals[end].items()):
            came = f" (which comes by {_way(way)})" if way else ""
            reason = check_topic_name(end.topic)
            yield Problem(
                "topic-name",
                "refuse",
                (step.flow,),
                step.end.topic,
                sentence=f"flow {step.flow} cannot mirror {say.topic(step.start)}{came}: on the "
                f"target, {reason}",
                fix="exclude it with topics_exclude, or use shorter cluster aliases",
                topic=step.start.topic,
            )


def _meetings(say: _Words, routes: Routes, doubled: set[ClusterTopic]) -> Iterator[Problem]:
    """Several topics that become one: a collision, or fan-in, intended by the identity policy."""
    fan_in: dict[tuple[str, ...], list[ClusterTopic]] = {}
    for end in sorted(
        end for end, steps in routes.arrivals.items() if len(steps) > 1 and end not in doubled
    ):
        steps = sorted(routes.arrivals[end])
        names = tuple(sorted({step.flow for step in steps}))
        if len(steps) == len(names) and all(
            say.flows[name].settings.policy == "identity" for name in names
        ):
            fan_in.setdefault(names, []).append(end)
        elif check_topic_name(end.topic) is None:
            yield from _collisions(say, end, steps)
    for names, ends in fan_in.items():
        yield Problem(
            "fan-in",
            "note",
            names,
            ends[0].topic,
            f"{say.topics(ends)} gets the records of several sources, by {_and(names)}; each keeps "
            "its own order, and a group that reads it at several of them has one position there, "
            "the furthest of these",
        )


def _collisions(say: _Words, end: ClusterTopic, steps: Sequence[Step]) -> Iterator[Problem]:
    for flow, group in groupby(steps, key=lambda step: step.flow):
        for step in group:
            others = [say.topic(other.start) for other in steps if other != step]
            yield Problem(
                "collision",
                "refuse",
                (flow,),
                end.topic,
                sentence=f"flow {flow} would mirror {say.topic(step.start)} into {say.topic(end)}, "
                f"where {_and(others)} goes too",
                fix="exclude all of them but one with topics_exclude, or change the policy so "
                "that each has its own name",
                topic=step.start.topic,
            )


def _cut_off(flows: Sequence[ResolvedFlow]) -> Problem:
    return Problem(
        "too-many-names",
        "note",
        tuple(flow.name for flow in flows),
        str(STEP_LIMIT),
        sentence=f"the flows chain topics into more than {STEP_LIMIT:,} names, and the rest was "
        "not checked",
        fix="let each flow mirror what it must, with topics and topics_exclude",
    )


def _way(steps: Sequence[Step]) -> str:
    return ", ".join(step.flow for step in steps)


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")
