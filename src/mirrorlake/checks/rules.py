"""What `plan` and `run` refuse before a record moves: mistakes that MirrorMaker 2 permits. Pure.

`check_flows` is the entry point. Rules about clusters are here, those about topic names in
`checks.route_rules`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from mirrorlake.checks.problem import Problem, one_of_them, refused_flows
from mirrorlake.checks.route_rules import check_routes
from mirrorlake.checks.routes import Routes
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.naming.patterns import never_in_names
from mirrorlake.naming.selection import matches_any

_FACTORS = (
    "replication_factor",
    "checkpoints_topic_replication_factor",
    "heartbeats_topic_replication_factor",
)


def check_flows(
    flows: Sequence[ResolvedFlow],
    ids: Mapping[str, str],
    topics: Mapping[str, Collection[str]],
    known: Mapping[str, str] | None = None,
    brokers: Mapping[str, int] | None = None,
) -> list[Problem]:
    """Check flows that are to run together: refusals and notes, in the order of the rules.

    Args:
        flows: the flows, all of one topology file.
        ids: cluster ids by alias, without clusters that cannot be reached.
        topics: the present names on each cluster that can be reached, by alias.
        known: clusters that the lake has seen before: alias by cluster id.
        brokers: numbers of brokers, by alias.

    Raises:
        TopologyError: a custom policy cannot be loaded, or fails.
    """
    problems = [
        *_same_cluster(flows, ids),
        *_two_aliases(flows, ids),
        *_strangers(flows, ids, known or {}),
    ]
    refused = refused_flows(problems)
    going = [flow for flow in flows if flow.name not in refused]
    routes = Routes(going)
    problems += check_routes(routes, going, topics)
    there = {alias: set(names) for alias, names in topics.items()}
    for alias, topic in routes.arrivals:  # topics that flows make are there for other flows
        there.setdefault(alias, set()).add(topic)
    for flow in going:
        problems += [*_factors(flow, (brokers or {}).get(flow.target)), *_idle_patterns(flow)]
        if flow.source in topics and routes.complete:
            problems += _matchless(flow, there[flow.source])
    return problems


def aliases_of(flows: Iterable[ResolvedFlow]) -> list[str]:
    """The clusters that flows read or write."""
    return sorted({alias for flow in flows for alias in (flow.source, flow.target)})


def flows_at(alias: str, flows: Iterable[ResolvedFlow]) -> tuple[str, ...]:
    """The names of those flows that read or write a cluster."""
    return tuple(flow.name for flow in flows if alias in (flow.source, flow.target))


def _same_cluster(flows: Sequence[ResolvedFlow], ids: Mapping[str, str]) -> Iterator[Problem]:
    """Source and target are one cluster, whatever their aliases."""
    for flow in flows:
        if flow.source in ids and ids[flow.source] == ids.get(flow.target):
            yield Problem(
                "same-cluster",
                "refuse",
                (flow.name,),
                ids[flow.source],
                sentence=f"flow {flow.name} would mirror a cluster onto itself: {flow.source} and "
                f"{flow.target} are both cluster {ids[flow.source]}",
                fix="give one of them another bootstrap_servers",
            )


def _two_aliases(flows: Sequence[ResolvedFlow], ids: Mapping[str, str]) -> Iterator[Problem]:
    """One cluster under two aliases: names no longer show where a record has been (KAFKA-9914)."""
    by_id: dict[str, list[str]] = {}
    for alias in aliases_of(flows):
        if alias in ids:
            by_id.setdefault(ids[alias], []).append(alias)
    for cluster_id, aliases in by_id.items():
        if len(aliases) > 1:
            yield Problem(
                "two-aliases",
                "refuse",
                tuple(
                    flow.name for flow in flows if flow.source in aliases or flow.target in aliases
                ),
                cluster_id,
                sentence=f"clusters {' and '.join(aliases)} are the same cluster {cluster_id} "
                f"under {len(aliases)} aliases; its records would be mirrored in a loop, or arrive "
                "twice",
                fix="use one alias",
            )


def _strangers(
    flows: Sequence[ResolvedFlow], ids: Mapping[str, str], known: Mapping[str, str]
) -> Iterator[Problem]:
    """A cluster that the lake knows by another alias, or an alias that is another cluster there."""
    by_alias: dict[str, list[str]] = {}
    for cluster_id, alias in known.items():
        by_alias.setdefault(alias, []).append(cluster_id)
    touching: dict[str, list[str]] = {}
    for flow in flows:
        for alias in {flow.source, flow.target}:
            touching.setdefault(alias, []).append(flow.name)
    for alias in filter(ids.__contains__, sorted(touching)):
        cluster_id, before = ids[alias], known.get(ids[alias])
        touched = tuple(touching[alias])
        if before is not None and before != alias and ids.get(before) != cluster_id:
            yield Problem(
                "changed-alias",
                "refuse",
                touched,
                cluster_id,
                sentence=f"cluster {alias} is cluster {cluster_id}, which this lake knows as "
                f"{before}: under the new alias all its records would be landed and mirrored "
                "again, into topics of other names",
                fix=f"call it {before} again, or use a new lake",
            )
        elif before is None and alias in by_alias:
            yield Problem(
                "reused-alias",
                "refuse",
                touched,
                alias,
                sentence=f"cluster {alias} is cluster {cluster_id}, but this lake knows {alias} as "
                f"cluster {max(by_alias[alias])}: offsets of two clusters would be mixed",
                fix="correct bootstrap_servers, or give the new cluster another alias",
            )


def _factors(flow: ResolvedFlow, brokers: int | None) -> Iterator[Problem]:
    """A factor beyond the target: MirrorMaker 2 asks for 2, and fails on one broker for ever."""
    for setting in _FACTORS:
        wanted = getattr(flow.settings, setting)
        if brokers is not None and wanted is not None and wanted > brokers:
            count = "1 broker" if brokers == 1 else f"{brokers} brokers"
            yield Problem(
                "replication-factor",
                "note",
                (flow.name,),
                setting,
                f"flow {flow.name} asks for {setting} {wanted}, but cluster {flow.target} has "
                f"{count}: topics are made with {brokers}",
            )


def _idle_patterns(flow: ResolvedFlow) -> Iterator[Problem]:
    """No pattern, or one that no name of a topic can match: a flow without topics, or an exclusion
    or a pause of nothing, looks like one that works."""
    if not flow.settings.topics:
        yield Problem(
            "no-pattern",
            "note",
            (flow.name,),
            "topics",
            sentence=f"topics of flow {flow.name} is empty, so it mirrors no topic but heartbeats",
            fix="write patterns into it, or take it away for all topics",
        )
    settings = flow.settings
    patterns = {
        "topics": settings.topics,
        "topics_exclude": settings.topics_exclude,
        "paused": _paused_patterns(flow),
    }
    for setting, of_setting in patterns.items():
        for pattern in of_setting:
            char = never_in_names(pattern)
            if char is not None:
                yield Problem(
                    "idle-pattern",
                    "note",
                    (flow.name,),
                    setting,
                    sentence=f"{setting} of flow {flow.name} holds {pattern!r}, which matches no "
                    f"legal name of a topic: {char!r} is in none",
                    fix="correct the pattern, or take it away",
                )


def _paused_patterns(flow: ResolvedFlow) -> Sequence[str]:
    """The patterns of the topics that a flow pauses; none if it is paused as a whole."""
    paused = flow.settings.paused
    return () if isinstance(paused, bool) else paused


def _matchless(flow: ResolvedFlow, topics: Collection[str]) -> Iterator[Problem]:
    """Patterns by which the flow mirrors, or pauses, nothing of the source now: a misspelt one
    looks like one that works. `.*` may match no topic."""
    selected = [topic for topic in topics if flow.selection.selects(topic)]
    uses = (
        ("topics", flow.settings.topics, "mirrors no topic", "is mirrored"),
        ("paused", _paused_patterns(flow), "pauses none of its topics", "is paused"),
    )
    for setting, patterns, does, becomes in uses:
        idle = [
            pattern
            for pattern in patterns
            if pattern != ".*"
            and never_in_names(pattern) is None
            and not any(matches_any((pattern,), topic) for topic in selected)
        ]
        if not idle:
            continue
        near = get_close_matches(idle[0], topics, 1)
        yield Problem(
            "no-match",
            "note",
            (flow.name,),
            idle[0],
            sentence=f"{setting} of flow {flow.name} holds {one_of_them(map(repr, idle))}, by "
            f"which it {does} that cluster {flow.source} shows now",
            fix=f"correct the pattern{f' (there is {near[0]})' if near else ''}; a topic that "
            f"matches it and is made later {becomes} then",
        )
