"""What a flow selects at its source and a comparison did not see."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaException

from mirrorlake.errors import ClusterUnusable
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.records import first_rows
from mirrorlake.kafka.values import Row
from mirrorlake.lake.objectives import known_heartbeats
from mirrorlake.offsets.partition_ranges import PartitionRanges
from mirrorlake.offsets.positions import GenerationOffset, TopicAndPartition
from mirrorlake.offsets.ranges import Extent, OffsetRanges
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.run.target_losses import ends_below
from mirrorlake.verify.not_compared import (
    BEYOND_MAP,
    DIFFERED,
    GONE,
    IN_FRONT,
    NO_ANSWER,
    NO_WORD,
    NOT_STAGED,
    SILENT,
    NotCompared,
    PartitionFacts,
    maybe_not_staged,
    maybe_skipped,
    not_mapped,
    reasons,
    removed_head,
)
from mirrorlake.verify.partition_scope import PartitionScope
from mirrorlake.verify.plan import mapped_segments
from mirrorlake.verify.scope import FlowScope
from mirrorlake.verify.verdict import FOREIGN


def find_not_compared(
    scope: FlowScope, compared: Iterable[PartitionScope], index: StageIndex, bounds: Extent
) -> tuple[list[NotCompared], list[NotCompared]]:
    """What was not compared: stretches that wait for an operator, and stretches that may be on
    their way, as nothing is known to hold them up. `compared` are the partitions that are compared
    up to their ends, by this `index`; `bounds` are the requested source offsets, inclusive.
    Heartbeats are left out, since they never stop. Raises ClusterUnusable.
    """
    lake = scope.deployment.lake
    aside = known_heartbeats(lake, scope.flow.name)
    compared = tuple(compared)
    by_key = {partition.key: partition for partition in compared}
    facts = list(_facts(scope, by_key, index.topics(scope.flow.source), aside))
    stretches = [stretch for one in facts for stretch in not_mapped(one)]
    maybe = [stretch for one in facts if (stretch := maybe_not_staged(one))]
    begun = {one.key: one.first for one in compared if scope.is_hidden(one)}
    maybe = [replace(one, first=begun.get((one.topic, one.partition), one.first)) for one in maybe]
    mapped = _mapped_heads(scope, facts)
    stretches += _not_staged(scope, maybe)
    stretches += _skipped(scope, [maybe_skipped(one, mapped.get(one.key, ())) for one in facts])
    stretches += [
        stretch for one in compared if not aside(one.topic) for stretch in _unseen(scope, one)
    ]
    stretches += _silent(scope, [one for one in compared if not aside(one.topic)])
    flow = scope.flow
    rows = lake.ask("verify_waits", flow=flow.name, prefix=f"{flow.source}->")
    incidents = [row for row in rows if row["open"] or scope.is_of_mirror(row)]
    stretches += _went_back(scope, facts, incidents)
    held: list[NotCompared] = []
    free: list[NotCompared] = []
    for stretch, why in reasons(_within(stretches, bounds), incidents, flow.pauses):
        if why is not None:
            held.append(replace(stretch, reason=why[0], detail=why[1]))
        else:
            comes = stretch.reason != NO_ANSWER and stretch.detail != IN_FRONT
            (free if comes else held).append(stretch)
    tails = _within(_beyond_maps(scope, aside), bounds)
    # else a position is committed with the records: what has none is not being written now
    comes = flow.settings.delivery != "exactly_once"
    for stretch, why in reasons(tails, incidents, flow.pauses):
        (free if why is None and comes else held).append(stretch)
    differed = [
        NotCompared(*place, *extent, DIFFERED, detail=GONE.format(verdict))
        for place, extent, verdict in scope.differed(compared)
    ]
    return [*held, *_within(differed, bounds)], free


def find_strangers(scope: FlowScope, index: StageIndex) -> list[dict[str, Any]]:
    """A difference for each target partition that holds records though the flow has brought nothing
    there: no range of a comparison reaches them. Raises ClusterUnusable."""
    flow = scope.flow
    grown = scope.target.untouched(index.topics(flow.source), scope.rows)
    firsts = {place: first for place, (_, first, _) in grown.items()}
    rows = _first_rows(scope.deployment.connections, flow.target, firsts)
    return [
        {
            "flow": flow.name,
            "topic": grown[place][0],
            "partition": place[1],
            "kind": FOREIGN,
            "first_offset": 0,
            "last_offset": 0,
            "record_count": 1,
            "target_offset": row.offset,
            "detail": "the flow has brought nothing to the partition",
        }
        for place, row in sorted(rows.items())
        if row.offset < grown[place][2]
    ]


def _silent(scope: FlowScope, compared: Iterable[PartitionScope]) -> list[NotCompared]:
    """Partitions whose leader at the target does not say where the log ends: what is proven of them
    may be lost, and what came behind it is not compared."""
    return [
        NotCompared(
            *one.key, one.generation, one.end, None, NO_ANSWER, detail=SILENT.format(*place)
        )
        for one in compared
        if (place := (one.target_topic, one.partition)) not in scope.target.ends
    ]


def _beyond_maps(scope: FlowScope, aside: Callable[[str], bool]) -> list[NotCompared]:
    """What logs of the target hold behind the map's ends, where it is not known whether the flow is
    writing there. Transaction markers are no records, so whether there is one is looked up."""
    grown = {
        (row["target_topic"], row["partition"]): (row, end)
        for row, end in scope.target.beyond_maps(scope.rows)
        if not aside(row["topic"])
    }
    firsts = {place: row["target_end"] for place, (row, _) in grown.items()}
    records = _first_rows(scope.deployment.connections, scope.flow.target, firsts)
    return [
        NotCompared(
            *(row["topic"], row["partition"], row["generation"], row["source_end"], None),
            NO_ANSWER,
            detail=BEYOND_MAP.format(*place, records[place].offset),
        )
        for place, (row, end) in sorted(grown.items(), key=lambda each: each[0])
        if place in records and records[place].offset < end
    ]


def _facts(
    scope: FlowScope,
    compared: Mapping[TopicAndPartition, PartitionScope],
    staged: Mapping[str, Mapping[int, PartitionRanges]],
    aside: Callable[[str], bool],
) -> Iterable[PartitionFacts]:
    keys = {(topic, partition) for topic in scope.selected for partition in staged.get(topic, {})}
    for key in sorted(key for key in keys | scope.source_partitions if not aside(key[0])):
        ranges, one = staged.get(key[0], {}).get(key[1]), compared.get(key)
        place = scope.floors.get(key, (0, 0)) if one is None else (one.generation, one.end)
        compared_to = GenerationOffset(*place)
        landed = scope.landed(key, ranges)
        if landed.generation == compared_to.generation:
            landed = GenerationOffset(landed.generation, max(landed.offset, compared_to.offset))
        yield PartitionFacts(
            key,
            compared_to,
            staged=ranges,
            left_out=lambda generation, key=key, one=one: scope.left_out(key, generation, one),  # type: ignore[misc]
            landed=landed,
            source=_at_source(scope, key),
            same=scope.same_topic(key[0]),
            begins=scope.begins(key),
            first=scope.first(key, ranges, one),
            passed_over=scope.passed_over(key),
            removed=scope.removed(key),
        )


def _mapped_heads(
    scope: FlowScope, facts: Iterable[PartitionFacts]
) -> Mapping[TopicAndPartition, list[Extent]]:
    """What is mapped of the offsets that were removed from the stage and that the source still has,
    by partition."""
    heads = {one.key: (one.landed.generation, head) for one in facts if (head := removed_head(one))}
    asked = [
        (*key, generation, scope.flow.target_topic(key[0]), *head)
        for key, (generation, head) in heads.items()
    ]
    mapped: dict[TopicAndPartition, list[Extent]] = defaultdict(list)
    for key, (segments, _) in (mapped_segments(scope, asked) if asked else {}).items():
        for segment in segments:
            ends = (segment.source_first, segment.source_last)
            # two may lie on both sides of a hole; between more are markers, at regular distances
            mapped[key] += [ends] if segment.record_count > 2 else [(at, at) for at in ends]
    return mapped


def _at_source(scope: FlowScope, key: TopicAndPartition) -> tuple[int, int] | None:
    """Start and end of a partition's log at the source, (0, 0) if it is gone; None if unknown."""
    if key[0] in scope.hidden:
        return None
    return scope.source_bounds.get(key) if key in scope.source_partitions else (0, 0)


def _unseen(scope: FlowScope, one: PartitionScope) -> list[NotCompared]:
    """Mapped but unproven offsets of a partition that the flow no longer selects, and that the
    source may have but does not report."""
    if one.topic in scope.selected or not scope.is_hidden(one):
        return []
    proven = [audited.extent for audited in one.audited if audited.proven]
    return [
        NotCompared(*one.key, one.generation, *extent, NO_ANSWER, detail=NO_WORD)
        for extent in OffsetRanges(proven).lacking(one.first, one.end - 1)
    ]


def _went_back(
    scope: FlowScope, facts: Sequence[PartitionFacts], incidents: Iterable[Mapping[str, Any]]
) -> list[NotCompared]:
    """What was compared of logs that went back since: the source has other records there. Landing
    finds the offset; before that, the end of a log may show it."""
    landed = {one.key: one.landed for one in facts if one.same}
    found = {
        key: NotCompared(
            *key, row["generation"], row["first_offset"], row["last_offset"], NOT_STAGED
        )
        for row in incidents
        if row["kind"] == "source_rewound"
        and (key := (row["topic"], row["partition"])) in landed
        and landed[key].generation == row["generation"]
    }
    bounds = scope.source_bounds
    low = {
        key: at.offset
        for key, at in landed.items()
        if key in bounds.keys() - found.keys() and bounds[key][1] < at.offset
    }
    source = scope.deployment.connections.admin(scope.flow.source)
    # asked again: what was landed since the bounds were read lies below these ends
    ends = ends_below(lambda keys: source.end_offsets(keys, False, skip_silent=True), low)
    return [*found.values()] + [
        NotCompared(*key, landed[key].generation, end, low[key] - 1, NOT_STAGED)
        for key, end in ends.items()
    ]


def _not_staged(scope: FlowScope, stretches: Sequence[NotCompared]) -> list[NotCompared]:
    """The stretches of the source's logs, at most one of a partition, that hold a committed record,
    from the first such record on."""
    rows = _first_rows(
        scope.deployment.connections,
        scope.flow.source,
        {
            (stretch.topic, stretch.partition): stretch.first
            for stretch in stretches
            if stretch.last is not None
        },
    )
    lacking = []
    for stretch in stretches:
        row = rows.get((stretch.topic, stretch.partition))
        if stretch.last is None:
            lacking.append(stretch)
        elif row is not None and row.offset <= stretch.last:
            lacking.append(replace(stretch, first=row.offset))
    return lacking


def _skipped(scope: FlowScope, stretches: Iterable[Sequence[NotCompared]]) -> list[NotCompared]:
    """Of each partition the first of its stretches that holds a committed record."""
    lacking: list[NotCompared] = []
    left = [of_partition for of_partition in stretches if of_partition]
    while left:
        lacking += _not_staged(scope, [first for first, *_ in left])
        named = {(one.topic, one.partition) for one in lacking}
        left = [
            others
            for first, *others in left
            if others and (first.topic, first.partition) not in named
        ]
    return lacking


def _first_rows(
    connections: Connections, alias: str, asked: Mapping[TopicAndPartition, int]
) -> dict[TopicAndPartition, Row]:
    """The first committed record of each partition at or behind an offset. If retention removes the
    offset meanwhile, the search continues from the log's new start."""
    rows: dict[TopicAndPartition, Row] = {}
    try:
        while asked:
            rows |= first_rows(alias, connections.client(alias, "consumer"), asked)
            without = asked.keys() - rows.keys()
            # a leader that does not report its start has not said that no record is there
            starts = connections.admin(alias).start_offsets(without) if without else {}
            asked = {key: starts[key] for key in starts if starts[key] > asked[key]}
    except KafkaException as error:
        message = f"cluster {alias} cannot be read: {error.args[0].str()}"
        raise ClusterUnusable(message, alias=alias) from error
    return rows


def _within(stretches: Iterable[NotCompared], bounds: Extent) -> Iterable[NotCompared]:
    """The parts of stretches within some source offsets."""
    for stretch in stretches:
        first = max(stretch.first, bounds[0])
        last = stretch.last if stretch.last is None else min(stretch.last, bounds[1])
        if first <= bounds[1] and (last is None or first <= last):
            yield replace(stretch, first=first, last=last)
