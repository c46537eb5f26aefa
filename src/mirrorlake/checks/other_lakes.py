"""Whether another lake has mirrored a flow to its target before: this one would write each record
again, since it knows neither the map nor the positions of the other.

Usually the other one is lost, or the topology file names a wrong place. The positions of its flow
at the target show it, for as long as the broker keeps them.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from mirrorlake.checks.holdings import Holding, holdings
from mirrorlake.checks.problem import Problem, one_of_them
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.groups import POSITIONS_TOPIC, positions_or_errors
from mirrorlake.lake.reader import Reader
from mirrorlake.naming.at_target import is_own_group, of_other_lakes


def begun_topics(lake: Reader | None, flow: str) -> Collection[str]:
    """The source topics that a flow of this lake wrote, or was about to; none without a lake."""
    if lake is None:
        return ()
    # a lake of an earlier version has noted none before its next run
    for query in ("noted_topics", "mapped_topics"):
        if topics := {row["topic"] for row in lake.query_rows(query, flow=flow)}:
            return topics
    return ()


def other_lakes(
    connections: Connections,
    flows: Iterable[tuple[ResolvedFlow, Collection[str]]],
    lake_id: str | None,
) -> list[Problem]:
    """Refusals of flows that another lake has mirrored and this one has not begun, and of single
    topics of flows that it has; each flow comes with its `begun_topics`. Raises ClusterUnusable."""
    problems = []
    for flow, begun in flows:
        held = holdings(connections, flow, (), None, besides=begun)
        problems += other_lake_problems(connections, flow, lake_id, held, begun)
    return problems


def is_unknown(problem: Problem) -> bool:
    """Whether it is a problem only because a cluster did not answer."""
    return problem.rule == "other-lake" and not is_own_group(problem.subject)


def other_lake_problems(
    connections: Connections,
    flow: ResolvedFlow,
    lake_id: str | None,
    held: Iterable[Holding],
    begun: Collection[str],
) -> list[Problem]:
    """A refusal if flows of this name of other lakes have positions in target topics that hold
    records, or with silent leaders, except heartbeats; or if that is unknown. It concerns the flow
    if that has `begun` no topic, else each topic. A note where the cluster does not show which
    groups it cannot list now. Without any records nothing more is queried."""
    mirrors = {
        holding.target_topic: holding.topic
        for holding in held
        # any number of lakes may write heartbeats to one topic
        if holding.may_hold
        and holding.topic not in begun
        and not flow.naming.is_heartbeats(holding.topic)
    }
    if not mirrors:
        return []
    admin = connections.groups(flow.target)
    listing = admin.listing()
    known = positions_or_errors(admin, of_other_lakes(listing.states, lake_id, flow.name))
    problems = []
    for group, positions in sorted(known.positions.items()):
        brought = sorted(mirrors.keys() & {topic for topic, _ in positions})
        if brought and not begun:
            return [_refusal(flow, group, brought)]
        problems += [_refusal(flow, group, [mirror], mirrors[mirror]) for mirror in brought]
    for why in (*listing.errors, *known.errors.values()):
        sentence = (
            f"it is not known whether another lake has brought flow {flow.name} to cluster "
            f"{flow.target} before ({why}), and its target topics hold records, or may"
        )
        fix = "start it when all brokers answer"
        topics = sorted(mirrors.values()) if begun else [None]
        return problems + [_problem(flow, flow.target, sentence, fix, topic) for topic in topics]
    is_shown = listing.shows_homes or not admin.hides_homes()
    return problems if is_shown else [*problems, _unseen(flow)]


def _unseen(flow: ResolvedFlow) -> Problem:
    """No refusal: principals without that right could start no flow there."""
    sentence = (
        f"another lake may have brought flow {flow.name} to cluster {flow.target} before, whose "
        "target topics hold records, or may: groups whose coordinator is away cannot be seen "
        f"without DESCRIBE on topic {POSITIONS_TOPIC} there"
    )
    fix = "grant it (docs/security.md), or start the flow while all brokers run"
    return replace(_problem(flow, flow.target, sentence, fix, None), severity="note")


def _refusal(
    flow: ResolvedFlow, group: str, topics: Sequence[str], topic: str | None = None
) -> Problem:
    """The refusal for topics that another lake mirrors; `topic` is the source's if only that is."""
    sentence = (
        f"another lake has brought flow {flow.name} to topic {one_of_them(topics)} on cluster "
        f"{flow.target}: its positions are there, in group {group}, and this lake, which knows "
        "nothing of that, would write each record once more"
    )
    fix = (
        "name the place of that lake in the topology file, or put back a copy of it; where that "
        f"lake calls another cluster {flow.source}, give yours another alias; to begin anew all "
        "the same, delete these topics, or mirror under other names; to have each record there "
        "twice, delete that group, once no process uses that lake"
    )
    return _problem(flow, group, sentence, fix, topic)


def _problem(
    flow: ResolvedFlow, subject: str, sentence: str, fix: str, topic: str | None
) -> Problem:
    return Problem(
        "other-lake", "refuse", (flow.name,), subject, sentence=sentence, fix=fix, topic=topic
    )
