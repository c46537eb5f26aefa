"""Queries the clusters for what `checks.rules` needs, and acts on the verdict."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from mirrorlake.checks.access import (
    access_problems,
    member_problems,
    own_topic_problems,
    transaction_problems,
)
from mirrorlake.checks.holdings import holding_problems, holdings, other_maker
from mirrorlake.checks.other_lakes import begun_topics, other_lakes
from mirrorlake.checks.problem import Problem, left_out, refused_flows
from mirrorlake.checks.rules import aliases_of, check_flows
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnreachable, ClusterUnusable, ReplicationError, TopologyError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.targets import living_targets
from mirrorlake.naming.at_target import name_at_target
from mirrorlake.threads import side_by_side

logger = logging.getLogger(__name__)

#: The rules about a MirrorMaker 2 that writes, or may.
_WRITERS = ("second-writer", "quiet-writer")


@dataclass(frozen=True)
class Preflight:
    """The flows that may run, with what is known about them: cluster ids by alias, those of them
    that the lake has to note, topics that a flow leaves out with the reason, and all problems,
    notes included. `silent` has the reason for each cluster that did not answer."""

    connections: Connections
    flows: tuple[ResolvedFlow, ...]
    ids: Mapping[str, str]
    left_out: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    to_note: Mapping[str, str] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)

    def can_run(self, flow: ResolvedFlow) -> bool:
        """Whether nothing refuses a flow, and both of its clusters were asked."""
        asked = {flow.source, flow.target} <= self.ids.keys()
        return asked and flow.name not in refused_flows(self.problems)

    def complaints(self) -> list[ReplicationError]:
        """Selected topics that are left out: the others are mirrored, but it is not healthy."""
        return [
            ReplicationError(str(problem), topic=problem.topic)
            for problem in self.problems
            if problem.severity == "refuse" and problem.topic is not None
        ]


def judge(
    lake: Lake | None,
    connections: Connections,
    flows: Sequence[ResolvedFlow],
    lake_exists: bool = False,
) -> Preflight:
    """Query the clusters and check flows that are to run together.

    Args:
        lake: has noted clusters before; None if no lake is open.
        connections: the clusters.
        flows: those that are to run. One that waits for a cluster does so while the others run.
        lake_exists: without `lake`: that there is one, which may know all clusters.

    Raises:
        TopologyError: a flow must not run.
        ClusterUnusable: no flow can do anything: either its target does not answer, or its source
        does not and nothing of it was ever staged.
    """
    result = judged(lake, connections, flows, lake_exists)
    for problem in refused_flows(result.problems).values():
        raise TopologyError(str(problem))
    for problem in result.problems:
        if problem.severity == "note":
            logger.info("%s", problem)
    return result


def judged(
    lake: Lake | None,
    connections: Connections,
    flows: Sequence[ResolvedFlow],
    lake_exists: bool = False,
) -> Preflight:
    """Without the flows that must not run, by `problems`. Raises ClusterUnusable like `judge`."""
    result = check(lake, connections, flows, lake_exists)
    if lake is not None or not lake_exists:
        writers = second_writers(result, lake)
        reader, lake_id = (None, None) if lake is None else (lake.now, lake.stored_id)
        able = [(flow, begun_topics(reader, flow.name)) for flow in flows if result.can_run(flow)]
        writers += other_lakes(connections, able, lake_id)
        problems = (*result.problems, *writers)
        result = replace(result, problems=problems, left_out=_left_out(problems, flows))
    refused = refused_flows(result.problems)
    return replace(result, flows=tuple(flow for flow in flows if flow.name not in refused))


def second_writers(result: Preflight, lake: Lake | None) -> list[Problem]:
    """Refusals of flows that would write beside MirrorMaker 2, and notes about those that may."""
    problems, connections = list[Problem](), result.connections
    for flow in result.flows:
        if {flow.source, flow.target} <= result.ids.keys():
            maker = other_maker(connections, flow)
            if maker is not None and (maker.is_running or maker.may_wake):
                known = {} if lake is None else living_targets(lake.reader, flow.name)
                ours = {target.target_topic for target in known.values() if target.lives}
                noticed = holding_problems(flow, holdings(connections, flow, ours, maker), maker)
                problems += [problem for problem in noticed if problem.rule in _WRITERS]
    return problems


def check(
    lake: Lake | None,
    connections: Connections,
    flows: Sequence[ResolvedFlow],
    lake_exists: bool = False,
) -> Preflight:
    """The result with all flows: refusals are only reported."""
    aliases = aliases_of(flows)
    for alias in aliases:  # raises for a reference without a value before a cluster is waited for
        with suppress(ClusterUnusable):
            connections.admin(alias)
    answers = dict(zip(aliases, side_by_side(partial(_ask, connections), aliases), strict=True))
    silent = {alias: each for alias, each in answers.items() if isinstance(each, ClusterUnusable)}
    there = {alias: each for alias, each in answers.items() if isinstance(each, _Answer)}
    ids = {alias: answer.cluster_id for alias, answer in there.items()}
    topics = {alias: answer.topics for alias, answer in there.items()}
    brokers = {alias: answer.brokers for alias, answer in there.items()}
    seen = [] if lake is None else lake.ask("known_clusters")
    # What is staged of a source is still produced, whether or not the source is there.
    staged = set(silent) if lake_exists else {row["alias"] for row in seen}
    if flows and all(
        flow.target in silent or flow.source in silent.keys() - staged for flow in flows
    ):
        raise next(iter(silent.values()))
    for unanswered in silent.values():
        logger.warning("%s; its flows wait, except for what is staged already", unanswered)
    known = {row["cluster_id"]: row["alias"] for row in seen}
    noted = {(row["alias"], row["cluster_id"]) for row in seen if row["fresh"]}
    problems = check_flows(flows, ids, topics, known, brokers)
    refused = refused_flows(problems)
    asked = [
        flow
        for flow in flows
        if flow.name not in refused and {flow.source, flow.target} <= ids.keys()
    ]
    problems += access_problems(connections, asked)
    problems += [problem for flow in asked for problem in own_topic_problems(connections, flow)]
    if lake is None:
        problems += [
            problem for flow in asked for problem in member_problems(connections, flow, None)
        ]
    else:  # `plan` must leave no trace, and this makes a transactional id
        for flow in asked:
            try:
                problems += transaction_problems(
                    connections, flow, name_at_target(lake.lake_id, flow.name)
                )
                problems += member_problems(connections, flow, lake.stored_id)
            except ClusterUnreachable as error:
                # the flow itself waits for the coordinators that did not answer
                logger.warning(
                    "%s; the rights of flow %s there are not known yet", error, flow.name
                )
    to_note = {
        alias: cluster_id for alias, cluster_id in ids.items() if (alias, cluster_id) not in noted
    }
    return Preflight(
        connections,
        tuple(flows),
        ids=ids,
        left_out=_left_out(problems, flows),
        problems=tuple(problems),
        to_note=to_note,
        silent={alias: str(error) for alias, error in silent.items()},
    )


class _Answer(NamedTuple):
    """What a cluster is asked first: its id, the names of its topics, how many brokers it has."""

    cluster_id: str
    topics: list[str]
    brokers: int


def _ask(connections: Connections, alias: str) -> _Answer | ClusterUnusable:
    try:
        cluster_id, admin = connections.identify([alias])[alias], connections.admin(alias)
        return _Answer(cluster_id, list(admin.topics()), admin.known_brokers())
    except ClusterUnusable as error:
        return error


def _left_out(
    problems: Collection[Problem], flows: Iterable[ResolvedFlow]
) -> dict[str, dict[str, str]]:
    """By flow the topics that it leaves out, with the reason."""
    return {
        flow.name: {topic: str(problem) for topic, problem in left_out(problems, flow.name).items()}
        for flow in flows
    }
