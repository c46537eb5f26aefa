"""A plan, completed from the lake: the body of `OpenLake.plan`."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mirrorlake.config.lake import Lake as Location
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.lake.conditional_puts import check_conditional_puts
from mirrorlake.lake.event_log import WrittenChanges
from mirrorlake.lake.folder import has_table
from mirrorlake.lake.reader import Frame, Reader
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.library.answers import Plan
from mirrorlake.library.capacity import Load, Needs, needs
from mirrorlake.library.capacity_figures import LakeKind
from mirrorlake.library.internals import Internals
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.run.plan import make_plan
from mirrorlake.run.plan_totals import NothingStaged, Staged, UnknownStage
from mirrorlake.run.totals import map_ends, waiting_places

#: Above this many waiting records their bytes are not counted: counting means reading them.
COUNTED_RECORDS = 5_000_000
#: How far back to look for the busiest minute, ms: a longer time means more reading.
BUSY_MS = 3_600_000
_PLACES = "topic STRING, partition INT, generation INT, first BIGINT"


def planned(known: Internals, flows: Sequence[str] | None, tries_puts: bool = True) -> Plan:
    """Plan flows; `tries_puts`: try in the store of a lake that is there, too, whether it takes
    conditional puts. Raises as documented for `OpenLake.plan`."""
    wanted = known.topology.require_flows(flows)
    lake = known.sessionless
    document = make_plan(
        known.connections,
        wanted,
        WrittenChanges(lake),
        lake,
        _staged(lake, tries_puts),
        lake_id=None if known.location.path is None else known.stored_id,
    )
    needs = needs_of(document["flows"], wanted, _busiest(lake), kind_of(known.location))
    return Plan.from_document({**document, "needs": None if needs is None else vars(needs)})


def needs_of(
    planned: Sequence[Mapping[str, Any]],
    flows: Iterable[ResolvedFlow],
    busiest: Iterable[Mapping[str, Any]],
    kind: LakeKind,
) -> Needs | None:
    """What the process that runs the flows needs, from their plans and rows of `busiest_minutes`;
    None if a cluster does not answer, since then not everything is known."""
    if any(flow_plan["unasked"] is not None for flow_plan in planned):
        return None
    running = {flow.name: flow for flow in flows if not flow.paused}
    plans = [flow_plan for flow_plan in planned if flow_plan["flow"] in running]
    totals = [flow_plan["totals"] for flow_plan in plans]
    rows = [row for row in busiest if row["flow"] in running]
    load = Load(
        flows=len(running),
        sources=len({flow.source for flow in running.values()}),
        partitions=sum(each["partitions"] - each["partitions_refused"] for each in totals),
        positions=sum(flow_plan["groups"]["positions"] for flow_plan in plans),
        records_per_second=sum(row["records_per_second"] for row in rows) if rows else None,
        bytes_per_second=sum(row["bytes_per_second"] or 0.0 for row in rows) if rows else None,
    )
    return needs(load, kind)


def kind_of(location: Location) -> LakeKind:
    """Where a lake's tables lie."""
    if location.path is None:
        return "catalog"
    return "store" if location.in_store else "folder"


def _busiest(lake: Reader | None) -> Iterable[Mapping[str, Any]]:
    """What flows produced in their busiest recent minute, if a quick query can tell."""
    if lake is None or lake.directory is None or not has_table(lake.directory, "latency"):
        return ()
    since = round(time.time() * 1_000) - BUSY_MS
    return lake.query_rows("busiest_minutes", since_ms=since)


def _staged(lake: Reader | None, tries_puts: bool) -> Staged:
    """What the lake has staged; unknown in a catalog, where finding out means reading the stage."""
    if lake is None or lake.directory is None:
        return UnknownStage()
    is_there = has_table(lake.directory, "records")
    if not is_there:
        check_conditional_puts(lake.directory)
    elif tries_puts and lake.directory.in_store:
        with suppress(OSError):  # a principal that may not put overwrites nothing
            check_conditional_puts(lake.directory)
    return _StagedFiles(lake) if is_there else NothingStaged()


class _StagedFiles:
    """What a lake at a path or URL has staged, from the index of its stage. A plan is as of one
    moment, so answers about a cluster are kept."""

    def __init__(self, lake: Reader) -> None:
        self._lake = lake
        self._stage = StageFiles(lake)
        self._ends: dict[str, Mapping[TopicAndPartition, int]] = {}

    def ends(self, alias: str) -> Mapping[TopicAndPartition, int]:
        """The offset at which landing of each partition of a cluster continues: behind its last
        staged record, or behind the transaction markers that a sample covers."""
        if alias not in self._ends:
            self._ends[alias] = self._ends_of(alias)
        return self._ends[alias]

    def _ends_of(self, alias: str) -> Mapping[TopicAndPartition, int]:
        ends = {key: end for key, (_, end) in self._stage.ends(alias).items()}
        for row in self._lake.table_rows("replication_lag"):
            key = row["topic"], row["partition"]
            if key in ends and row["flow"].startswith(f"{alias}->"):
                ends[key] = max(ends[key], row["staged_end"] or 0)
        return ends

    def waiting(self, flow: str, alias: str, topics: Collection[str]) -> tuple[int, int | None]:
        """Count staged records of topics not in the flow's map, and their bytes unless many."""
        ends = map_ends(self._lake.query_rows("mapped_ends", flow=flow))
        with self._stage.reading() as index:
            here = {
                name: partitions
                for name, partitions in index.topics(alias).items()
                if name in topics
            }
            places, count = waiting_places(here, ends)
        if not places or count > COUNTED_RECORDS:
            return count, None if places else 0
        frames = {"places": Frame(_PLACES, places)}
        (counts,) = self._lake.query_rows("waiting_records", frames, source_cluster=alias)
        return counts["record_count"], counts["byte_count"]
