"""All that would be done, as one document: `mirrorlake plan`. Changes nothing, needs no lake."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mirrorlake.checks.holdings import Holding, holding_problems, holdings, other_maker
from mirrorlake.checks.other_lakes import begun_topics, other_lake_problems
from mirrorlake.checks.preflight import Preflight, check
from mirrorlake.checks.problem import Problem
from mirrorlake.checks.target_names import Made, colliding_names
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.acl_plan import AclPlan
from mirrorlake.control.acl_sync import AclSync
from mirrorlake.control.config_plan import ALWAYS
from mirrorlake.control.config_sync import ConfigSync
from mirrorlake.control.taken_names import TakenNames
from mirrorlake.control.topic_comparison import compare_topics
from mirrorlake.kafka.admin_configs import describe_topic_configs
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicConfigs, TopicInfo
from mirrorlake.lake.changes import ChangeLog, MemoryLog
from mirrorlake.lake.other_logs import other_logs
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.targets import closed_topics, living_targets
from mirrorlake.landing.generations import SAME, SinceLanded, since_landed
from mirrorlake.mm2.mirror_topics import Heartbeats
from mirrorlake.produce.codecs import Codecs
from mirrorlake.run.flow_spec import producer_settings
from mirrorlake.run.group_lease import worker_topic
from mirrorlake.run.limits import limit_problems
from mirrorlake.run.plan_groups import planned_groups
from mirrorlake.run.plan_totals import NothingStaged, Staged, flow_totals
from mirrorlake.run.totals import UNKNOWN, Totals, added
from mirrorlake.run.unseen import away_ms, unseen_problems


def make_plan(
    connections: Connections,
    flows: Sequence[ResolvedFlow],
    log: ChangeLog | None = None,
    lake: Reader | None = None,
    staged: Staged | None = None,
    *,
    lake_id: str | None = None,
) -> dict[str, Any]:
    """Compare both sides of each flow; `log` says what earlier runs made, `lake`, whose identity is
    `lake_id`, which target topics are ours, and `staged` what waits in the stage.

    Returns {"clusters": {alias: cluster id}, "problems": [{rule, severity, flows, subject,
    sentence, fix, topic}], "flows": [{flow, source, target, policy, policy_sha256, delivery,
    compression, provenance, paused, unasked: why nothing is known of it, topics: [{topic,
    target_topic, partitions, factor, configs, action, reason, note, holder, held_records}],
    configs: [{topic, target_topic, key, before, after, refusal}], acls: [{action, pattern, name,
    principal, host, operation, permission}], acls_withheld: [those of the source that would have to
    be written out for too many topics],
    acls_left: [{..., policy} of those that stay, since they were made under another policy],
    heartbeats: [{cluster, topic, partitions, factor} of the topics that would be made],
    worker_topics: [the same of those by which processes stand by for each other],
    groups: {attributes of run.plan_groups.PlannedGroups},
    totals: {attributes of run.totals.Totals}}], "totals": {the same of all flows, and conflicts:
    how many refusals are among the problems}}. `holder` of a topic that is there says whose the
    `held_records` (offsets) in it are: nobody, ours, MirrorMaker 2 or foreign. A flow that must not
    start has no topics, nor has one of which an end could not be asked (`unasked`). Raises
    TopologyError, ClusterUnreachable, AuthenticationFailed.
    """
    staged = staged or NothingStaged()
    preflight = check(None, connections, flows)
    held = {flow.name: _held(preflight, flow, lake) for flow in flows}
    problems = [
        *preflight.problems,
        *(problem for holdings_of_flow in held.values() for problem in holdings_of_flow.problems),
    ]
    if lake is not None:
        for flow in flows:
            if preflight.can_run(flow):
                there, begun = held[flow.name].topics.values(), begun_topics(lake, flow.name)
                problems += other_lake_problems(connections, flow, lake_id, there, begun)
    planned = [
        _flow(preflight, flow, log or MemoryLog(), held[flow.name], staged) for flow in flows
    ]
    for flow, document in zip(flows, planned, strict=True):
        at_source = _configs_at_source(preflight.connections, flow, document)
        groups = planned_groups(preflight.connections, flow, _mirrored_topics(document))
        document["groups"] = vars(groups)
        problems += limit_problems(preflight.connections, flow, document, at_source)
        problems += unseen_problems(
            preflight.connections,
            flow,
            document,
            at_source=at_source,
            away=away_ms(lake, flow.name),
            staged=staged,
        )
    problems += _collisions(preflight.connections, planned)
    totals = added(Totals(**flow_plan["totals"]) for flow_plan in planned)
    conflicts = sum(problem.severity == "refuse" for problem in problems)
    return {
        "clusters": preflight.ids,
        "problems": [vars(problem) for problem in problems],
        "flows": planned,
        "totals": {**vars(totals), "conflicts": conflicts},
    }


class _Held(NamedTuple):
    """What the target topics of a flow hold already, by source topic; the problems with that; the
    target topics that the flow has written to, by source topic; the source topics that wait for a
    decision, or were stopped, because one side was made again; and those that are about to wait, or
    may be: their configs stay."""

    topics: Mapping[str, Holding] = {}
    problems: Sequence[Problem] = ()
    mirrored: Mapping[str, str] = {}
    waiting: frozenset[str] = frozenset()
    since_landed: SinceLanded = SAME


def _held(preflight: Preflight, flow: ResolvedFlow, lake: Reader | None) -> _Held:
    if not preflight.can_run(flow):
        return _Held()
    known = {} if lake is None else living_targets(lake, flow.name)
    maker = other_maker(preflight.connections, flow)
    ours = {target.target_topic for target in known.values() if target.lives}
    held = holdings(preflight.connections, flow, ours, maker)
    found = _Held(
        {holding.topic: holding for holding in held},
        list(holding_problems(flow, held, maker)),
        mirrored={topic: target.target_topic for topic, target in known.items()},
    )
    if lake is None:
        return found
    waiting = other_logs(lake, flow.name).topics | closed_topics(lake, flow.name, known)
    now = since_landed(lake, preflight.connections.admin(flow.source), known.keys())
    return found._replace(waiting=waiting, since_landed=now)


def _flow(
    preflight: Preflight, flow: ResolvedFlow, log: ChangeLog, held: _Held, staged: Staged
) -> dict[str, Any]:
    settings = flow.settings
    codecs = Codecs(producer_settings(flow, preflight.connections.client(flow.target, "producer")))
    document: dict[str, Any] = {
        "flow": flow.name,
        "source": flow.source,
        "target": flow.target,
        "policy": settings.policy,
        "policy_sha256": flow.naming.file_hash,
        "delivery": settings.delivery,
        "compression": codecs.codec_of(0),
        "provenance": settings.provenance,
        "paused": settings.paused,
        "unasked": next(
            (
                preflight.silent[end]
                for end in (flow.source, flow.target)
                if end in preflight.silent
            ),
            None,
        ),
        **{name: [] for name in ("topics", "configs", "acls", "acls_withheld", "acls_left")},
        "heartbeats": [],
        "worker_topics": [],
        "totals": vars(Totals()),
    }
    if document["unasked"] is not None:
        document["totals"] = vars(UNKNOWN)
    if preflight.can_run(flow):
        document.update(_differences(preflight, flow, log, held, staged))
    return document


def _differences(
    preflight: Preflight, flow: ResolvedFlow, log: ChangeLog, held: _Held, staged: Staged
) -> dict[str, Any]:
    """What one flow would do to its target: topics, configs of those that exist, ACLs."""
    connections, settings = preflight.connections, flow.settings
    there = connections.admin(flow.source).topics()
    taken = TakenNames(flow, lambda: held.mirrored).refused(there)
    left_out = {**taken, **preflight.left_out.get(flow.name, {})}
    plans = compare_topics(flow, connections, left_out, there)
    names = {plan.topic: plan.target_topic for plan in plans if plan.action != "refuse"}
    configs = ConfigSync(
        flow,
        connections,
        MemoryLog(),
        names.get,
        waiting=lambda: held.waiting,
        since_landed=lambda _: held.since_landed,
    )
    created = {plan.topic: plan.factor for plan in plans if plan.action == "create"}
    keeps_configs = settings.sync_topic_configs_enabled
    given: Mapping[str, Mapping[str, str]] = dict.fromkeys(created, ALWAYS)
    if created and keeps_configs:
        given = configs.creation(created)
    acls = AclSync(
        flow,
        connections,
        log,
        remote_topic=names.get,
        mirrored=lambda: frozenset(held.mirrored.values()),
        waiting=lambda: held.waiting,
        since_landed=lambda _: held.since_landed,
    )
    wanted = acls.compare() if settings.sync_topic_acls_enabled else AclPlan([], (), {})
    return {
        "topics": [
            {**vars(plan), "configs": given.get(plan.topic, {})}
            | _holder(held.topics.get(plan.topic))
            for plan in plans
        ],
        "configs": [vars(change) for change in (configs.plan() if keeps_configs else ())],
        "acls": [{"action": change.action, **vars(change.acl)} for change in wanted.changes],
        "acls_withheld": [vars(acl) for acl in wanted.withheld],
        "acls_left": [{**vars(acl), "policy": policy} for acl, policy in wanted.left.items()],
        "heartbeats": _heartbeats(preflight, flow) if settings.emit_heartbeats_enabled else [],
        "worker_topics": _worker_topics(connections, flow),
        "totals": vars(flow_totals(connections, flow, plans, staged)),
    }


def _configs_at_source(
    connections: Connections, flow: ResolvedFlow, document: Mapping[str, Any]
) -> Mapping[str, TopicConfigs]:
    """The configs at the source of the topics that a flow mirrors."""
    topics = _mirrored_topics(document)
    return describe_topic_configs(connections.admin(flow.source), topics).configs if topics else {}


def _mirrored_topics(document: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(each["topic"] for each in document["topics"] if each["action"] != "refuse")


def _collisions(
    connections: Connections, planned: Sequence[Mapping[str, Any]]
) -> Iterator[Problem]:
    """Mirrors that their targets would refuse for their names. Raises ClusterUnreachable."""
    made: dict[str, list[Made]] = {}
    for document in planned:
        for topic in document["topics"]:
            if topic["action"] == "create":
                each = Made(document["flow"], topic["topic"], topic["target_topic"])
                made.setdefault(document["target"], []).append(each)
    for target, names in made.items():
        yield from colliding_names(target, names, connections.admin(target).topics())


def _holder(held: Holding | None) -> dict[str, Any]:
    """The owner of a target topic's records, and their count; None if there is no topic yet."""
    return {"holder": held and held.whose, "held_records": 0 if held is None else held.records}


def _heartbeats(preflight: Preflight, flow: ResolvedFlow) -> list[dict[str, Any]]:
    return _made(Heartbeats(flow, preflight.connections, MemoryLog()).missing())


def _worker_topics(connections: Connections, flow: ResolvedFlow) -> list[dict[str, Any]]:
    if connections.topology.availability != "kafka":
        return []
    topics = [(alias, worker_topic(connections, alias)) for alias in (flow.source, flow.target)]
    missing = [(alias, topic.missing()) for alias, topic in topics]
    return _made((alias, topic) for alias, topic in missing if topic is not None)


def _made(missing: Iterable[tuple[str, TopicInfo]]) -> list[dict[str, Any]]:
    return [
        {"cluster": alias, "topic": made.name, "partitions": made.partitions, "factor": made.factor}
        for alias, made in missing
    ]
