"""The rights that flows' principals lack, checked before the first record (docs/security.md)."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace

from confluent_kafka import KafkaException

from mirrorlake.checks.problem import Problem, one_of_them
from mirrorlake.checks.rules import flows_at
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.access import (
    NO_TOPIC_ID,
    TopicAccess,
    creation_rights,
    described,
    may_write_transactions,
)
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.refusals import principal_of, reason_of
from mirrorlake.mm2.topics import checkpoints_topic
from mirrorlake.naming.policy import HEARTBEATS, check_topic_name
from mirrorlake.naming.worker_groups import TOPIC as WORKERS
from mirrorlake.naming.worker_groups import group_of_flow, group_of_landing

_RULE = "access"
_GRANT = "grant the ACLs that docs/security.md lists"
_PLAIN_NAME = re.compile(r"[\w.-]+")
_Rights = dict[str, TopicAccess]
#: Queries a cluster, by its alias, for the rights on topics; the last argument are existing topics.
_Ask = Callable[[str, Set[str], Iterable[str]], _Rights]


def access_problems(connections: Connections, flows: Sequence[ResolvedFlow]) -> list[Problem]:
    """The rights on topics that flows lack, one refusal for each topic; and notes about topics that
    were not answered, and about clusters whose topics have no ids (KIP-516). Queries both clusters,
    changes nothing.

    Topics that a pattern would select, but that may not be described, cannot be seen without that
    right; only those that a flow gives by their whole name are reported.

    Raises:
        ClusterUnreachable: a cluster does not answer.
        AuthenticationFailed: it refuses us.
        KafkaException: it answers with an error of its own.
    """
    without_ids: set[str] = set()

    def rights(alias: str, topics: Set[str], there: Iterable[str]) -> _Rights:
        """The rights on some topics; an existing topic is added to see if topics have ids."""
        access = described(connections.admin(alias).client, {*topics, *sorted(there)[:1]})
        if any(topic.topic_id == NO_TOPIC_ID for topic in access.values()):
            without_ids.add(alias)
        return {name: access[name] for name in sorted(topics)}

    problems = [
        problem
        for flow in flows
        for side in (_source, _target)
        for problem in side(connections, flow, rights)
    ]
    return problems + [_no_ids(alias, flows) for alias in sorted(without_ids)]


def _no_ids(alias: str, flows: Sequence[ResolvedFlow]) -> Problem:
    return Problem(
        "topic-ids",
        "note",
        flows_at(alias, flows),
        alias,
        sentence=f"the topics of cluster {alias} have no ids, as before Kafka 2.8: one that is "
        "deleted and made again is noticed by its offsets only, or not at all",
        fix="stop the flow before you delete one of its topics, or upgrade the brokers",
    )


def own_topic_problems(connections: Connections, flow: ResolvedFlow) -> list[Problem]:
    """The rights on MirrorMaker 2's own topics, heartbeats and checkpoints, that a flow lacks:
    notes, since records go on without them. Changes nothing. Raises as `access_problems`."""
    settings, wanted = flow.settings, []
    if settings.emit_heartbeats_enabled:
        wanted += [(flow.source, HEARTBEATS), (flow.target, HEARTBEATS)]
    if settings.emit_checkpoints_enabled:
        wanted.append((flow.target, checkpoints_topic(flow)))
    return [
        replace(problem, severity="note")
        for alias, name in wanted
        for problem in _lacking(connections, flow, alias, name, "WRITE")
    ]


def _lacking(
    connections: Connections, flow: ResolvedFlow, alias: str, name: str, right: str
) -> Iterator[Problem]:
    """The problem that a right on a topic is lacking, or that to create it where it is not there;
    or that it was not answered."""
    admin = connections.admin(alias)
    if name in admin.topics():
        access = described(admin.client, {name})
    else:
        access, right = creation_rights(admin.client, {name}), "CREATE"
    if access[name].lacks(right):
        yield _problem(connections, flow, alias, right, f"topic {name}")
    yield from _unchecked(flow, alias, access)


def _unchecked(flow: ResolvedFlow, alias: str, access: _Rights) -> Iterator[Problem]:
    """A note about topics of which a cluster did not answer what is allowed."""
    errors = {name: topic.error for name, topic in access.items() if topic.error is not None}
    if errors:
        name = min(errors)
        sentence = (
            f"the rights on topic {one_of_them(sorted(errors))} of cluster {alias} were not "
            f"checked: {errors[name]}"
        )
        yield Problem(_RULE, "note", (flow.name,), f"topic {name}", sentence)


def transaction_problems(connections: Connections, flow: ResolvedFlow, name: str) -> list[Problem]:
    """The rights on its group and transactional ids that an exactly-once flow lacks on its target.

    `name` is the flow's name there: that of its group, and the prefix of its transactional ids.
    Uses one transactional id that no producer has, `<name>-check`. Raises ClusterUnreachable when
    its coordinators do not answer, as while a cluster makes their topics.
    """
    if flow.settings.delivery != "exactly_once":
        return []
    admin = connections.admin(flow.target)
    problems = []
    rights = connections.groups(flow.target).rights(name)
    try:
        may_write = may_write_transactions(
            connections.client(flow.target, "producer"), f"{name}-check"
        )
    except KafkaException as error:
        raise ClusterUnreachable(
            f"cluster {flow.target} at {admin.address} does not answer about groups and "
            f"transactions ({reason_of(error.args[0])}); check that its brokers are healthy",
            alias=flow.target,
        ) from error
    if rights is not None and "READ" not in rights:
        problems.append(_problem(connections, flow, flow.target, "READ", f"group {name}"))
    if not may_write:
        problems.append(
            _problem(connections, flow, flow.target, "WRITE", f"transactional ids {name}-*")
        )
    return problems


def member_problems(
    connections: Connections, flow: ResolvedFlow, lake_id: str | None
) -> list[Problem]:
    """The rights that a process lacks, on either cluster, to stand by for others of its topology
    file: a process that is not a member of the groups there never runs the flow. Empty if the file
    does not set that up. Groups are checked if the lake's id is known. Changes nothing; raises as
    `access_problems`."""
    if connections.topology.availability != "kafka":
        return []
    problems = list[Problem]()
    for alias, group in (
        (flow.target, group_of_flow(lake_id or "", flow.name)),
        (flow.source, group_of_landing(lake_id or "", flow.source)),
    ):
        problems += _lacking(connections, flow, alias, WORKERS, "READ")
        allowed = None if lake_id is None else connections.groups(alias).rights(group)
        if allowed is not None and "READ" not in allowed:
            problems.append(_problem(connections, flow, alias, "READ", f"group {group}"))
    return problems


def _source(connections: Connections, flow: ResolvedFlow, rights: _Ask) -> Iterator[Problem]:
    there, selection = connections.admin(flow.source).topics(), flow.selection
    named = {topic for topic in flow.settings.topics if _PLAIN_NAME.fullmatch(topic)}
    selected = {topic for topic in {*there, *named} if selection.selects(topic)}
    access = rights(flow.source, selected, there)
    for topic, allowed in access.items():
        if allowed.lacks("READ"):
            missing = "DESCRIBE and READ" if allowed.lacks("DESCRIBE") else "READ"
            yield _problem(connections, flow, flow.source, missing, f"topic {topic}", topic=topic)
    yield from _unchecked(flow, flow.source, access)


def _target(connections: Connections, flow: ResolvedFlow, rights: _Ask) -> Iterator[Problem]:
    """Check WRITE for records, and READ for the flow's position, committed there."""
    admin = connections.admin(flow.target)
    there = connections.admin(flow.source).topics()
    sources = {flow.target_topic(topic): topic for topic in there if flow.selection.selects(topic)}
    sources = {name: topic for name, topic in sources.items() if not check_topic_name(name)}
    wanted = ("WRITE", "READ") if flow.settings.delivery == "exactly_once" else ("WRITE",)
    there = admin.topics()
    access = rights(flow.target, sources.keys() & there.keys(), there)
    created = creation_rights(admin.client, sources.keys() - there.keys())
    for topics, needed in ((access, wanted), (created, ("CREATE",))):
        for name, allowed in sorted(topics.items()):
            right = " and ".join(filter(allowed.lacks, needed))
            if right:
                topic = sources[name]
                yield _problem(connections, flow, flow.target, right, f"topic {name}", topic=topic)
    yield from _unchecked(flow, flow.target, {**access, **created})


def _problem(
    connections: Connections,
    flow: ResolvedFlow,
    alias: str,
    right: str,
    resource: str,
    *,
    topic: str | None = None,
) -> Problem:
    who = principal_of(connections.client(alias, "admin"))
    sentence = f"{who} may not {right} {resource} on cluster {alias}"
    return Problem(
        _RULE, "refuse", (flow.name,), resource, sentence=sentence, fix=_GRANT, topic=topic
    )
