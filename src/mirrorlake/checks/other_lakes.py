"""Whether another lake has brought a flow to its target before: this one would write each record
once more, since it knows neither the map nor the positions of the other.

Mostly the other one is lost, or the file names a wrong place. What it left at the target says so:
the positions of its flow, for as long as the broker keeps them.
"""

from collections.abc import Iterable, Sequence

from mirrorlake.checks.holdings import Holding, holdings
from mirrorlake.checks.problem import Problem
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.groups import positions_or_errors
from mirrorlake.lake.reader import Reader
from mirrorlake.naming.at_target import of_other_lakes


def not_begun(lake: Reader | None, flows: Sequence[ResolvedFlow]) -> list[ResolvedFlow]:
    """The flows that a lake has not begun with; no lake has begun with none."""
    return [
        flow for flow in flows if lake is None or not lake.query_rows("flow_begun", flow=flow.name)
    ]


def other_lakes(
    connections: Connections, flows: Sequence[ResolvedFlow], lake_id: str | None
) -> list[Problem]:
    """Refusals of flows, which a lake has not begun with, that another one has. Raises
    ClusterUnusable."""
    return [
        problem
        for flow in flows
        for problem in other_lake_problems(
            connections, flow, lake_id, holdings(connections, flow, (), None)
        )
    ]


def other_lake_problems(
    connections: Connections,
    flow: ResolvedFlow,
    lake_id: str | None,
    held: Iterable[Holding],
) -> list[Problem]:
    """A refusal where flows of this name of other lakes have positions in target topics that hold
    records, or whose leaders do not tell, heartbeats aside; or where that is not known. Where none
    holds any, nothing more is asked for."""
    mirrors = {
        holding.target_topic
        for holding in held
        # which any number of lakes may bring to one topic
        if holding.may_hold and not flow.naming.is_heartbeats(holding.topic)
    }
    if not mirrors:
        return []
    admin = connections.groups(flow.target)
    listing = admin.listing()
    known = positions_or_errors(admin, of_other_lakes(listing.states, lake_id, flow.name))
    for group, positions in sorted(known.positions.items()):
        if topics := sorted(mirrors.intersection(topic for topic, _ in positions)):
            return [_refusal(flow, group, topics)]
    for why in (*listing.errors, *known.errors.values()):
        sentence = (
            f"it is not known whether another lake has brought flow {flow.name} to cluster "
            f"{flow.target} before ({why}), and its target topics hold records, or may"
        )
        return [_problem(flow, flow.target, sentence, "start it when all brokers answer")]
    return []


def _refusal(flow: ResolvedFlow, group: str, topics: Sequence[str]) -> Problem:
    others = f" (and {len(topics) - 1:,} others)" if len(topics) > 1 else ""
    sentence = (
        f"another lake has brought flow {flow.name} to topic {topics[0]}{others} on cluster "
        f"{flow.target}: its positions are there, in group {group}, and this lake, which knows "
        "nothing of that, would write each record once more"
    )
    fix = (
        "name the place of that lake in the topology file, or put back a copy of it; where that "
        f"lake calls another cluster {flow.source}, give yours another alias; to begin anew all "
        "the same, delete these topics, or mirror under other names; to have each record there "
        "twice, delete that group, once no process uses that lake"
    )
    return _problem(flow, group, sentence, fix)


def _problem(flow: ResolvedFlow, subject: str, sentence: str, fix: str) -> Problem:
    return Problem("other-lake", "refuse", (flow.name,), subject, sentence=sentence, fix=fix)
