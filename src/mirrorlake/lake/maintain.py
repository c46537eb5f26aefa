"""`mirrorlake maintain`: the upkeep of a lake, beside running replicators or without any."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

from mirrorlake.config.lake import Maintenance
from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.lake import table_upkeep
from mirrorlake.lake.changes import HISTORY_DELETED, WHOLE_LAKE, Change
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.forgotten import finish_calls, noted_calls
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.objectives import note_objectives
from mirrorlake.lake.retention import ConsumingFlow, Cut, StagedGeneration, cut_records, removals_of
from mirrorlake.lake.targets import stopped_targets

#: Rows of the map are merged when their batches are so old, days: queries are about recent ones.
MERGED_AFTER_DAYS = 1
#: After so many days one sample a minute is left, and after so many one an hour.
MINUTES_AFTER_DAYS, HOURS_AFTER_DAYS = 1, 7
#: The table of landed records.
_STAGE = "records"


#: What else waits for records of the stage, beside the flows of a topology file.
Others = Callable[[Lake], Iterable[ConsumingFlow]]


def maintain(
    lake: Lake,
    topology: Topology,
    kept: Maintenance,
    dry_run: bool = False,
    others: Others = lambda _lake: (),
) -> dict[str, Any]:
    """Delete what is older than `kept` says and no flow waits for, thin samples, merge rows of the
    map, make large files of small ones, and vacuum.

    `others` wait for records too: replays and restores that have begun.

    Returns {"dry_run", "settings", "records": {"before", "removed", "held": [...], "forgotten":
    [...]: what killed calls of `forget` noted, and the replays that it waits for}, "history":
    {table: rows removed}, "thinned": samples removed, "map": {"rows_before", "rows"} of those that
    were merged (None in a dry run), "tables": {table: {"files_before", "files", "bytes_before",
    "bytes"}}}. Raises LeaseTaken when another process maintains this lake.
    """
    with Lease(lake, "maintenance of the lake"):
        return _maintain(lake, topology, kept, dry_run, others)


def _maintain(
    lake: Lake, topology: Topology, kept: Maintenance, dry_run: bool, others: Others
) -> dict[str, Any]:
    before = table_upkeep.sizes(lake)
    if not dry_run:
        note_objectives(lake, topology, {})
        finish_calls(lake)
    document: dict[str, Any] = {
        "dry_run": dry_run,
        "settings": table_upkeep.apply_settings(lake, dry_run),
    }
    document["records"] = {
        **_retain_records(lake, topology, kept, dry_run, others),
        "forgotten": [
            {"forget_id": call.forget_id, "records": call.records, "flows": call.going}
            for call in noted_calls(lake)
        ],
    }
    document["history"], document["thinned"], document["map"] = {}, 0, None
    if not dry_run:
        document["history"] = _remove_history(lake, _days_ago(kept.history_days))
        minutes, hours = _ms(_days_ago(MINUTES_AFTER_DAYS)), _ms(_days_ago(HOURS_AFTER_DAYS))
        document["thinned"] = table_upkeep.thin_samples(lake, minutes, hours)
        merged = table_upkeep.merge_map(lake, _ms(_days_ago(MERGED_AFTER_DAYS)))
        document["map"] = {"rows_before": merged.removed, "rows": merged.added}
        for table in TABLES:
            upkeep = lake.upkeep(table)
            if before[table].files > 1:
                upkeep.compact()
            # `records` even if all its rows are deleted: files of earlier versions still hold them.
            if before[table].files > 0 or table == _STAGE:
                upkeep.vacuum(kept.vacuum_hours)
        EventLog(lake).record(WHOLE_LAKE, [Change("maintain", "lake", None, _summary(document))])
    after = table_upkeep.sizes(lake)
    document["tables"] = {
        name: {
            "files_before": before[name].files,
            "files": after[name].files,
            "bytes_before": before[name].bytes,
            "bytes": after[name].bytes,
        }
        for name in TABLES
    }
    return document


def _retain_records(
    lake: Lake, topology: Topology, kept: Maintenance, dry_run: bool, others: Others
) -> dict[str, Any]:
    if kept.retention_days is None:
        return {"before": None, "removed": 0, "held": []}
    cutoff = _days_ago(kept.retention_days)
    staged, readers = stage_of(lake, topology, cutoff, _days_ago(kept.disabled_hold_days))
    cuts, retained = cut_records(staged, [*readers, *others(lake)])
    removals = removals_of(staged, cuts)
    if not dry_run:
        # before the delete: a flow that lacks them has to find out, even after a crash in between
        table_upkeep.note_removals(lake, removals, renews=True)
    noted = [Cut(one.source_cluster, *one.place, one.below) for one in removals]
    removed = table_upkeep.remove_records(lake, noted, _ms(cutoff), dry_run)
    if removed and not dry_run:
        summary = (
            f"{removed} records landed before {cutoff.isoformat(timespec='seconds')} were deleted"
        )
        EventLog(lake).record(WHOLE_LAKE, [Change("retention", "records", None, summary)])
    return {
        "before": cutoff,
        "removed": removed,
        "held": [asdict(partition) for partition in retained],
    }


def _remove_history(lake: Lake, cutoff: datetime) -> dict[str, int]:
    """Delete what is older than a time from each table of history; returns how many rows went."""
    (oldest,) = lake.ask("oldest_checkpoint")
    if oldest["at"] is not None and oldest["at"].replace(tzinfo=timezone.utc) < cutoff:
        # before: who asks where a group stood earlier has to hear that the lake may know it no more
        deleted = Change(HISTORY_DELETED, "checkpoints", after=cutoff.isoformat())
        EventLog(lake).record(WHOLE_LAKE, [deleted])
    names = table_upkeep.HISTORY
    return {name: table_upkeep.remove_history(lake, name, _ms(cutoff)) for name in names}


def _summary(document: Mapping[str, Any]) -> str:
    merged, history = document["map"], sum(document["history"].values())
    return (
        f"{document['records']['removed']} records and {history} rows of history deleted, "
        f"{merged['rows_before']} rows of the map merged into {merged['rows']}"
    )


def stage_of(
    lake: Lake, topology: Topology, cutoff: datetime, released: datetime
) -> tuple[list[StagedGeneration], list[ConsumingFlow]]:
    """What the stage holds, relative to these times, and the flows that wait for it.

    Every flow of the file counts, also paused ones and, until `released`, disabled ones. A flow
    that has never run holds back all that it mirrors; one that parked records, everything from the
    first of them on that was not sent since. None waits for what goes to a topic that was stopped
    by a decision.
    """
    readers = []
    for flow in map(topology.flow, topology.flows):
        floors = table_upkeep.flow_floors(lake, flow.name, flow.target_topic)
        parked = table_upkeep.oldest_parked(lake, flow.name)
        held = {key: min(at, parked.get(key, at)) for key, at in floors.items()}
        mirrors = partial(_mirrors, flow, stopped_targets(lake, flow.name))
        readers.append(ConsumingFlow(flow.name, flow.source, mirrors, held, flow.settings.enabled))
    return table_upkeep.staged_generations(lake, _ms(cutoff), _ms(released)), readers


def _mirrors(flow: ResolvedFlow, stopped: Collection[tuple[str, str]], topic: str) -> bool:
    """Whether a flow sends what is staged of a topic, now or later."""
    return flow.selection.selects(topic) and (
        not stopped or (topic, flow.target_topic(topic)) not in stopped
    )


def _days_ago(days: int) -> datetime:
    return datetime.now(timezone.utc) - timedelta(days=days)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
