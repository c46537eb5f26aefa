"""What the target topics of a flow hold already, and whose it is: this flow's, MirrorMaker 2's, or
of an unknown one."""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mirrorlake.checks.problem import Problem
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.connections import Connections
from mirrorlake.mm2.topics import offset_syncs_separator

Owner = Literal["nobody", "ours", "MirrorMaker 2", "foreign"]
#: MirrorMaker 2 counts as running while its newest offset sync is younger than this, seconds: where
#: records come, it writes one a minute at least.
LIVE_SECONDS = 300.0


@dataclass(frozen=True)
class Holding:
    """What a target topic holds: `records` counts offsets, transaction markers included."""

    topic: str
    target_topic: str
    whose: Owner
    records: int


@dataclass(frozen=True)
class OtherMaker:
    """What MirrorMaker 2 left of a flow between the same clusters: the names that it gives to the
    source's topics, and how old its newest offset sync is, seconds; None for none."""

    names: frozenset[str]
    age: float | None

    @property
    def is_running(self) -> bool:
        """Whether it writes now."""
        return self.age is not None and self.age < LIVE_SECONDS


def other_maker(connections: Connections, flow: ResolvedFlow) -> OtherMaker | None:
    """MirrorMaker 2 between the clusters of a flow, by its topic of offset syncs on either of them
    (KIP-716); None for none. Raises ClusterUnusable."""
    topics, there = connections.admin(flow.source).topics(), connections.admin(flow.target).topics()
    for alias, other in ((flow.source, flow.target), (flow.target, flow.source)):
        for name in connections.admin(alias).topics():
            separator = offset_syncs_separator(name, other)
            if separator is None:
                continue
            newest = connections.admin(alias).newest_times([(name, 0)]).get((name, 0))
            default = {topic: f"{flow.source}{separator}{topic}" for topic in topics}
            # Under its identity policy there are no such names.
            names = frozenset(name if name in there else topic for topic, name in default.items())
            return OtherMaker(names, None if newest is None else time.time() - newest / 1000)
    return None


def holdings(
    connections: Connections, flow: ResolvedFlow, ours: Collection[str], maker: OtherMaker | None
) -> list[Holding]:
    """What is in the target topics of a flow that are there, by the name of the source topic.

    Args:
        connections, flow: whose.
        ours: target topics that the lake knows as living ones of the flow.
        maker: see `other_maker`.
    """
    target = connections.admin(flow.target)
    there = target.topics()
    names = {
        name: flow.target_topic(name)
        for name in connections.admin(flow.source).topics()
        if _wanted(flow, name)
    }
    names = {name: mirror for name, mirror in sorted(names.items()) if mirror in there}
    ends = target.log_ends(
        [(name, number) for name in names.values() for number in range(there[name].partitions)]
    )
    counts: Counter[str] = Counter()
    for (mirror, _), log in ends.items():
        counts[mirror] += log.end - log.start
    return [
        Holding(name, mirror, _whose(mirror, counts[mirror], ours, maker), counts[mirror])
        for name, mirror in names.items()
    ]


def _wanted(flow: ResolvedFlow, topic: str) -> bool:
    return flow.selection.selects(topic) and not flow.pauses(topic)


def _whose(mirror: str, records: int, ours: Collection[str], maker: OtherMaker | None) -> Owner:
    if mirror in ours:
        return "ours"
    if not records:
        return "nobody"
    return "MirrorMaker 2" if maker is not None and mirror in maker.names else "foreign"


def holding_problems(
    flow: ResolvedFlow, holdings: Sequence[Holding], maker: OtherMaker | None
) -> list[Problem]:
    """A refusal where the flow would be a second writer beside MirrorMaker 2, else notes of records
    that are not its own."""
    by: Mapping[Owner, list[Holding]] = {
        whose: [holding for holding in holdings if holding.whose == whose]
        for whose in ("MirrorMaker 2", "foreign")
    }
    problems = []
    if by["MirrorMaker 2"] and maker is not None and maker.is_running:
        problems.append(
            Problem(
                "second-writer",
                "refuse",
                (flow.name,),
                by["MirrorMaker 2"][0].target_topic,
                sentence=f"MirrorMaker 2 writes to {_topics(by['MirrorMaker 2'])} on cluster "
                f"{flow.target}, into which flow {flow.name} would write each record once more: "
                f"its newest offset sync is {maker.age:.0f} s old",
                fix="run beside it under other names (`mirrorlake import --beside`, "
                f"docs/migrate.md), or stop it and wait {LIVE_SECONDS / 60:.0f} minutes",
            )
        )
    elif by["MirrorMaker 2"]:
        problems.append(
            _note(flow, by["MirrorMaker 2"], "MirrorMaker 2 wrote, which does not run any more")
        )
    if by["foreign"]:
        problems.append(_note(flow, by["foreign"], f"flow {flow.name} did not write"))
    return problems


def _note(flow: ResolvedFlow, holdings: Sequence[Holding], who: str) -> Problem:
    return Problem(
        "foreign-records",
        "note",
        (flow.name,),
        holdings[0].target_topic,
        sentence=f"{_topics(holdings)} on cluster {flow.target} holds "
        f"{sum(holding.records for holding in holdings):,} records that {who}; consumers there "
        "read them, and the flow adds all that the source has",
        fix="mirror under other names, or delete these topics first",
    )


def _topics(holdings: Sequence[Holding]) -> str:
    others = len(holdings) - 1
    return f"topic {holdings[0].target_topic}" + (
        f" (and {others:,} other{'s' if others > 1 else ''})" if others else ""
    )
