"""What a flow's target topics hold, and who wrote it: the flow, MirrorMaker 2, or others."""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mirrorlake.checks.problem import Problem
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.connections import Connections
from mirrorlake.mm2.topics import offset_syncs_separator, worker_topic_of
from mirrorlake.offsets.positions import TopicAndPartition, partitions_of

Owner = Literal["nobody", "ours", "MirrorMaker 2", "foreign"]
#: MirrorMaker 2 counts as running while its newest offset sync is younger than this, seconds: while
#: records come, it writes at least one per minute.
LIVE_SECONDS = 300.0
_LATELY = f"{LIVE_SECONDS / 60:.0f} minutes"


@dataclass(frozen=True)
class Holding:
    """The content of a target topic: `records` counts offsets, transaction markers included, of the
    leaders that answer; `may_hold` means that there are some, or a leader does not answer."""

    topic: str
    target_topic: str
    whose: Owner
    records: int
    may_hold: bool


@dataclass(frozen=True)
class MirrorMakerTraces:
    """Traces of MirrorMaker 2 between the same clusters: the names that it gives to the source's
    topics, and whether it wrote an offset sync of late (LIVE_SECONDS). `silent` says why that is
    unknown, if it is. `worker` is whether a worker of it noted something at the target of late,
    which it also does for heartbeats, and so even if it mirrors nothing; None for unknown."""

    names: frozenset[str]
    wrote: bool
    silent: str | None = None
    worker: bool | None = False

    @property
    def is_running(self) -> bool:
        """Whether it writes now, or may."""
        return self.silent is not None or self.wrote

    @property
    def may_wake(self) -> bool:
        """Whether a worker runs, or may, although no record came recently that it would mirror; it
        may have stopped mirroring."""
        return self.worker is not False


def other_maker(connections: Connections, flow: ResolvedFlow) -> MirrorMakerTraces | None:
    """MirrorMaker 2 between the clusters of a flow, by its topics of offset syncs on either of them
    (KIP-716); None if there is none. An earlier, different setup leaves several: those that are
    written to count, if any is. Raises ClusterUnusable."""
    topics, there = connections.admin(flow.source).topics(), connections.admin(flow.target).topics()
    makers = []
    for alias, names, other in (
        (flow.source, topics, flow.target),
        (flow.target, there, flow.source),
    ):
        for name in names:
            separator = offset_syncs_separator(name, other)
            if separator is None:
                continue
            default = {topic: f"{flow.source}{separator}{topic}" for topic in topics}
            # Under its identity policy there are no such names.
            mirrors = (mirror if mirror in there else topic for topic, mirror in default.items())
            wrote, silent = _wrote_syncs(connections.admin(alias), name)
            makers.append(MirrorMakerTraces(frozenset(mirrors), wrote, silent))
    makers = [maker for maker in makers if maker.is_running] or makers
    if not makers:
        return None
    names_of_all = frozenset[str]().union(*(maker.names for maker in makers))
    noted = worker_topic_of(flow.source)
    places = [(noted, number) for number in range(there[noted].partitions if noted in there else 0)]
    notes = _written_of_late(connections.admin(flow.target), places)
    worker = any(notes.values()) or (None if len(notes) < len(places) else False)
    return replace(makers[0], names=names_of_all, worker=worker)


def _written_of_late(
    admin: ClusterAdmin, places: Collection[TopicAndPartition]
) -> dict[TopicAndPartition, bool]:
    return admin.written_since(places, int((time.time() - LIVE_SECONDS) * 1000))


def _wrote_syncs(admin: ClusterAdmin, name: str) -> tuple[bool, str | None]:
    """Whether an offset-syncs topic was written to of late; and why that is unknown, if its leader
    does not answer."""
    for wrote in _written_of_late(admin, [(name, 0)]).values():
        return wrote, None
    return False, (
        f"the leader of its topic {name} on cluster {admin.alias} does not answer, so it is not "
        "known whether it runs"
    )


def holdings(
    connections: Connections,
    flow: ResolvedFlow,
    ours: Collection[str],
    maker: MirrorMakerTraces | None,
    besides: Collection[str] = (),
) -> list[Holding]:
    """What the existing target topics of a flow hold, by the name of the source topic.

    Args:
        connections, flow: the flow and its clusters.
        ours: target topics that the lake knows as living ones of the flow.
        maker: see `other_maker`.
        besides: topics of the source to leave out.
    """
    target = connections.admin(flow.target)
    there = target.topics()
    names = {
        name: flow.target_topic(name)
        for name in connections.admin(flow.source).topics()
        if _wanted(flow, name) and name not in besides
    }
    names = {name: mirror for name, mirror in sorted(names.items()) if mirror in there}
    places = partitions_of({name: there[name].partitions for name in names.values()})
    ends = target.log_ends(places)
    counts: Counter[str] = Counter()
    for (mirror, _), log in ends.items():
        counts[mirror] += log.end - log.start
    silent = {mirror for mirror, number in places if (mirror, number) not in ends}
    return [
        Holding(
            name,
            mirror,
            _whose(mirror, counts[mirror], ours, maker, may_have=mirror in silent),
            counts[mirror],
            may_hold=counts[mirror] > 0 or mirror in silent,
        )
        for name, mirror in names.items()
    ]


def _wanted(flow: ResolvedFlow, topic: str) -> bool:
    return flow.selection.selects(topic) and not flow.pauses(topic)


def _whose(
    mirror: str,
    records: int,
    ours: Collection[str],
    maker: MirrorMakerTraces | None,
    *,
    may_have: bool,
) -> Owner:
    """Who wrote a target topic; `may_have`: silent leaders may have records of it."""
    if mirror in ours:
        return "ours"
    if maker is not None and mirror in maker.names and (records or (may_have and maker.is_running)):
        return "MirrorMaker 2"
    return "foreign" if records else "nobody"


def holding_problems(
    flow: ResolvedFlow, holdings: Sequence[Holding], maker: MirrorMakerTraces | None
) -> list[Problem]:
    """A refusal where MirrorMaker 2 writes too, else notes of records not the flow's own."""
    by: Mapping[Owner, list[Holding]] = {
        whose: [holding for holding in holdings if holding.whose == whose]
        for whose in ("MirrorMaker 2", "foreign")
    }
    # heartbeats of any number of lakes may go to one topic
    foreign = [one for one in by["foreign"] if not flow.naming.is_heartbeats(one.topic)]
    problems = []
    if by["MirrorMaker 2"] and maker is not None and maker.is_running:
        problems.append(_second_writer(flow, by["MirrorMaker 2"], maker))
    elif by["MirrorMaker 2"] and maker is not None and maker.may_wake:
        problems.append(_quiet_writer(flow, by["MirrorMaker 2"], maker))
    elif by["MirrorMaker 2"]:
        who = "MirrorMaker 2 wrote, which shows no sign of running any more (docs/migrate.md)"
        problems.append(_note(flow, by["MirrorMaker 2"], who))
    if foreign:
        problems.append(_note(flow, foreign, f"flow {flow.name} did not write"))
    return problems


def _second_writer(
    flow: ResolvedFlow, holdings: Sequence[Holding], maker: MirrorMakerTraces
) -> Problem:
    topics = _topics(holdings)
    fix = (
        "run beside it under other names (`mirrorlake import --beside`, docs/migrate.md), or stop "
        f"it and wait {_LATELY}"
    )
    sentence = (
        f"MirrorMaker 2 writes to {topics} on cluster {flow.target}, into which flow {flow.name} "
        f"would write each record once more: it wrote an offset sync within {_LATELY}"
    )
    if maker.silent is not None:
        sentence = (
            f"MirrorMaker 2 may write to {topics} on cluster {flow.target}, into which flow "
            f"{flow.name} would write each record once more: {maker.silent}"
        )
        fix += ", and have that leader answer"
    return Problem(
        "second-writer",
        "refuse",
        (flow.name,),
        holdings[0].target_topic,
        sentence=sentence,
        fix=fix,
    )


def _quiet_writer(
    flow: ResolvedFlow, holdings: Sequence[Holding], maker: MirrorMakerTraces
) -> Problem:
    noted = worker_topic_of(flow.source)
    runs = f"runs: within {_LATELY} it noted how far it is, in {noted}"
    if maker.worker is None:
        runs = f"may run: not all leaders of {noted}, where it notes how far it is, answer"
    return Problem(
        "quiet-writer",
        "note",
        (flow.name,),
        holdings[0].target_topic,
        sentence=f"MirrorMaker 2 wrote to {_topics(holdings)} on cluster {flow.target}, and a "
        f"worker of it {runs}, though it wrote no offset sync; if it mirrors on, "
        "each record that comes is there twice",
        fix="see to it that it does not mirror there any more, or run beside it under other names "
        "(`mirrorlake import --beside`, docs/migrate.md)",
    )


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
