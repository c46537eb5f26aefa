"""Laws of replication that are broken now, by tables and targets: what `status` adds to `alerts`.

Its cost: one pass over the map's coordinates, the index of the stage (`lake/stage_index.py`), and
one query to each target cluster. A cluster that does not answer in time is unchecked.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from mirrorlake.checks.laws import MapExtent, MapGap, gaps_of, overtaken, shortfalls
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.question import Question
from mirrorlake.lake.reader import OFFSET_RANGES, Frame, Reader
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.starts import starts_of
from mirrorlake.lake.targets import LivingMirror
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.stage_index import StageIndex

#: How long to wait for a target cluster after the tables were read, seconds.
ANSWER_SECONDS = 2.0
_RANGES = f"flow STRING, {OFFSET_RANGES}, record_count BIGINT, target_topic STRING"


def broken_laws(
    lake: Reader, connections: Connections, flows: Sequence[ResolvedFlow]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows like those of the view `alerts`, and a sentence for each thing not checked."""
    extents = [MapExtent(**row) for row in lake.query_rows("map_extents")]
    targets = {(row["flow"], row["target_topic"]): row for row in lake.table_rows("living_targets")}
    mirrored: dict[str, set[TopicAndPartition]] = defaultdict(set)
    for row in lake.table_rows("replication_lag"):
        mirrored[row["flow"]].add((row["topic"], row["partition"]))
    living = [extent for extent in extents if _is_living(extent, targets)]
    asked = []
    for flow in flows:
        own = _of_now(flow, living)
        noted = {
            name: row
            for (owner, name), row in targets.items()
            if owner == flow.name and flow.target_topic(row["topic"]) == name
        }
        asked.append(_LogEndsRequest(connections, flow, own, noted))
    alerts = _map_gaps(lake, flows, extents)
    deadline = time.monotonic() + ANSWER_SECONDS
    unchecked = [_gaps_unknown(flow) for flow in flows if _has_echoes(flow, extents)]
    for request in asked:
        ends, why = request.answer(deadline - time.monotonic())
        if ends is None:
            unchecked.append(
                f"what the target of flow {request.flow.name} holds was not checked: {why}"
            )
            continue
        alive, unknown = _alive(request, mirrored.get(request.flow.name, set()), ends)
        unchecked += unknown
        for short in shortfalls(request.extents, alive, ends):
            extent = short.extent
            alerts.append(_alert(vars(extent), "target_behind", short.missing, short.detail()))
        alerts += request.made_again()
    return alerts, unchecked


def _alive(
    request: "_LogEndsRequest", sampled: set[TopicAndPartition], ends: Collection[TopicAndPartition]
) -> tuple[set[TopicAndPartition], list[str]]:
    """The source partitions whose target is compared with the map, and what is not known of others.

    Without a sample, as no process ran the flow recently, its present selection counts. Beside
    others that were sampled, a partition may lack one as its leader is away, or its topic was
    deleted, and the mirror with it: that the mirror is not there says nothing then.
    """
    selected = _selected(request.flow, request.extents)
    there = {
        (one.topic, one.partition)
        for one in request.extents
        if (one.target_topic, one.target_partition) in ends
    }
    left = sorted(selected - sampled - there) if sampled else []
    alive = sampled | selected.difference(left)
    if not left:
        return alive, []
    topic, partition = left[0]
    return alive, [
        f"{len(left):,} partitions of flow {request.flow.name} were not checked, such as "
        f"{topic}-{partition}: they were not sampled of late, and what the map has of them is not "
        "at the target, which is right where their topics were deleted on both sides"
    ]


def _of_now(flow: ResolvedFlow, extents: Iterable[MapExtent]) -> list[MapExtent]:
    """Those of a flow that are of the target topics of now, and not of an earlier policy, whose
    topics the flow has left, and an operator may have deleted."""
    return [
        one
        for one in extents
        if one.flow == flow.name and flow.target_topic(one.topic) == one.target_topic
    ]


def _selected(flow: ResolvedFlow, extents: Iterable[MapExtent]) -> set[TopicAndPartition]:
    """The mapped source partitions that a flow still mirrors."""
    return {(one.topic, one.partition) for one in extents if flow.selection.selects(one.topic)}


def _is_living(extent: MapExtent, targets: Mapping[tuple[str, str], Any]) -> bool:
    """Whether it is of the target topic's living generation: the end of one opens an incident."""
    newest = targets.get((extent.flow, extent.target_topic))
    return newest is None or (
        newest["lives"] and newest["target_generation"] == extent.target_generation
    )


def _has_echoes(flow: ResolvedFlow, extents: Iterable[MapExtent]) -> bool:
    """Whether staged records in mapped ranges may lack map rows as echoes: only headers show it."""
    return flow.settings.provenance != "none" and any(one.flow == flow.name for one in extents)


def _gaps_unknown(flow: ResolvedFlow) -> str:
    return (
        f"whether the map of flow {flow.name} has gaps was not checked: with provenance only the "
        "headers of its records say which of them have to be there; the view divergence reads them"
    )


def _map_gaps(
    lake: Reader, flows: Sequence[ResolvedFlow], extents: Sequence[MapExtent]
) -> list[dict[str, Any]]:
    """Overtaken staged records, however old, without a target offset in their topics now."""
    wanted = [flow for flow in flows if not _has_echoes(flow, extents)]
    if not wanted or not extents:
        return []
    ranges: list[tuple[object, ...]] = []
    with StageFiles(lake).reading() as index:
        for flow in wanted:
            here = _of_now(flow, extents)
            stopped, starts = _stopped(lake, flow, here), starts_of(lake, flow.name)
            parts = overtaken(flow.name, here, index.topics(flow.source), stopped, starts)
            ranges += [(*astuple(one), flow.target_topic(one.topic)) for one in parts]
        if not ranges:
            return []
        gaps = gaps_of(lake.query_rows("map_gaps", {"ranges": Frame(_RANGES, ranges)}))
        sources = {flow.name: flow.source for flow in wanted}
        left = [_not_given_up(lake, index, sources[gap.flow], gap) for gap in gaps]
    return [
        _alert(vars(gap), "map_gap", gap.missing, gap.detail()) for gap in left if gap.missing > 0
    ]


def _not_given_up(lake: Reader, index: StageIndex, source: str, gap: MapGap) -> MapGap:
    """A gap without its given-up records: not every given-up offset is that of a record."""
    count, unknown = gap.staged_of_it(index.topics(source)[gap.topic][gap.partition])
    if unknown:
        frame = Frame(OFFSET_RANGES, [(*gap.place, *offsets) for offsets in unknown])
        frames = {"ranges": frame}
        rows = lake.query_rows("staged_within", frames, cluster=source, noted_too=True)
        count += sum(row["record_count"] for row in rows)
    return gap.without(count)


def _stopped(
    lake: Reader, flow: ResolvedFlow, extents: Iterable[MapExtent]
) -> dict[PartitionGeneration, int]:
    """The offset from which on a partition is stopped, in `extents`' newest target generations."""
    newest: dict[TopicAndPartition, int] = defaultdict(int)
    for extent in extents:
        key = (extent.topic, extent.partition)
        newest[key] = max(newest[key], extent.target_generation)
    stopped = [
        (PartitionGeneration.from_row(row), row["first_offset"] or 0)
        for row in lake.query_rows("mirror_incidents", flow=flow.name)
        if row["resolution"] == "stop"
        and (key := (row["topic"], row["partition"])) in newest
        and LivingMirror(flow.target_topic(row["topic"]), newest[key]).is_of(row)
    ]
    return dict(sorted(stopped, reverse=True))  # the first of several


def _alert(place: Mapping[str, Any], name: str, missing: int, detail: str) -> dict[str, Any]:
    where = {"flow": place["flow"], "alert": name, "topic": place["topic"]}
    where["partition"] = place["partition"]
    return {**where, "value": float(missing), "threshold": 0.0, "since": None, "detail": detail}


class _LogEndsRequest:
    """The log ends of a flow's target partitions, and the ids of its target topics (`noted` by
    name, rows of `living_targets`), queried in a background thread."""

    def __init__(
        self,
        connections: Connections,
        flow: ResolvedFlow,
        extents: Sequence[MapExtent],
        noted: Mapping[str, Any],
    ) -> None:
        self.flow = flow
        self.extents = extents
        self._noted = {name: row for name, row in noted.items() if row["lives"] and row["topic_id"]}
        self._ids: Mapping[str, str] = {}
        self._admin = connections.admin
        silence = f"cluster {flow.target} does not answer"
        self._question = Question(f"status of {flow.name}", self._ask, silence) if extents else None

    def answer(self, seconds: float) -> tuple[dict[TopicAndPartition, int] | None, str]:
        """The ends, or None and the reason."""
        return ({}, "") if self._question is None else self._question.answer(seconds)

    def made_again(self) -> list[dict[str, Any]]:
        """Alerts for target topics of another id than noted, which no running flow reported."""
        return [
            _alert(
                {"flow": self.flow.name, "topic": row["topic"], "partition": None},
                "target_recreated",
                1,
                f"target topic {name} was made again: its id is {self._ids[name]}, and was "
                f"{row['topic_id']}",
            )
            for name, row in sorted(self._noted.items())
            if self._ids.get(name, row["topic_id"]) != row["topic_id"]
        ]

    def _ask(self) -> dict[TopicAndPartition, int]:
        admin = self._admin(self.flow.target)
        topics = admin.topics()
        places = {(extent.target_topic, extent.target_partition) for extent in self.extents}
        there = [
            (name, at) for name, at in places if name in topics and at < topics[name].partitions
        ]
        self._ids = admin.topic_ids(sorted(self._noted.keys() & topics.keys()))
        return admin.end_offsets(there, committed=False)
