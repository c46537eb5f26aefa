"""Upkeep of the tables: their settings, and deletion of what is old.

None of it blocks a running replicator. Its appends read nothing, so they conflict neither with a
delete nor with compaction; a change that does conflict (two changes of the same rows) is retried.
Compaction puts rows of `records` into other files; the index of the stage (`lake/stage_index.py`)
follows, and a task that has begun with a file still finds it, since it is left for `vacuum_hours`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.reader import Frame
from mirrorlake.lake.retention import Cut, Removal, StagedGeneration
from mirrorlake.lake.starts import starts_of
from mirrorlake.lake.targets import noted_targets
from mirrorlake.lake.upkeep import Rewritten, TableSize
from mirrorlake.offsets.generations import NotedTarget, newest_of
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.progress import MappedEnd, floors_of
from mirrorlake.offsets.runs import MAX_SEGMENTS
from mirrorlake.offsets.starts import Starts, floors_from

#: What tables of an older version's lake lack; `sql/tables` has the same.
_LOG = {"delta.logRetentionDuration": "interval 7 days"}
SETTINGS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("records", "latency", "offset_map"), {"delta.appendOnly": "false", **_LOG}),
    **dict.fromkeys(("positions", "checkpoints"), _LOG),
}
#: Tables whose rows are history, and are deleted by age.
HISTORY = ("latency", "positions", "checkpoints", "changes", "incidents")

_PLACE = "source_cluster STRING, topic STRING, partition INT, generation INT"
_CUTS = f"{_PLACE}, below BIGINT"
_REMOVALS = f"{_PLACE}, first_offset BIGINT, below BIGINT"


def apply_settings(lake: Lake, dry_run: bool = False) -> dict[str, dict[str, str]]:
    """Set the properties that tables of an older lake lack; returns those, by table."""
    lacking: dict[str, dict[str, str]] = {}
    for table, wanted in _wanted(lake).items():
        there = lake.properties(table)
        if missing := {key: value for key, value in wanted.items() if there.get(key) != value}:
            lacking[table] = missing
            if not dry_run:
                lake.upkeep(table).set_properties(missing)
    return lacking


def _wanted(lake: Lake) -> Mapping[str, Mapping[str, str]]:
    tables = {table: {**SETTINGS.get(table, {}), **lake.log_properties(table)} for table in TABLES}
    return {table: wanted for table, wanted in tables.items() if wanted}


def staged_generations(lake: Lake, cutoff_ms: int, released_ms: int) -> list[StagedGeneration]:
    """What the stage holds, and how much of it is older than two times (ms since 1970): the one
    before which it may be deleted, and the one before which disabled flows do not count."""
    reader = lake.upkeep("records").reader
    rows = reader.query_rows("staged_bounds", cutoff_ms=cutoff_ms, released_ms=released_ms)
    return [StagedGeneration(**row) for row in rows]


def flow_floors(
    lake: Lake, flow: str, remote_topic: Callable[[str], str | None] = lambda topic: None
) -> dict[TopicAndPartition, tuple[int, int]]:
    """Where a flow goes on: (generation, next source offset) of each (topic, partition).
    `remote_topic` names target topics: one made again may need all that the stage holds."""
    noted, _ = noted_targets(lake, flow)
    ends, _ = LakeMap(lake, flow).ends()
    return floors_by(ends, noted, starts_of(lake.now, flow), remote_topic)


def floors_by(
    ends: Iterable[MappedEnd],
    noted: Mapping[str, Sequence[NotedTarget]],
    starts: Starts,
    remote_topic: Callable[[str], str | None],
) -> dict[TopicAndPartition, tuple[int, int]]:
    """The same, by the ends of the flow's map, the generations of its target topics, and its
    starts."""
    targets = {target: newest_of(generations) for target, generations in noted.items()}
    floors = floors_from(floors_of(ends, remote_topic, targets), starts, remote_topic, targets)
    return {key: (floor.generation, floor.next) for key, floor in floors.items()}


def oldest_parked(lake: Lake, flow: str) -> dict[TopicAndPartition, tuple[int, int]]:
    """The first parked and unsent record of each partition: (generation, source offset)."""
    oldest: dict[TopicAndPartition, tuple[int, int]] = {}
    for row in lake.ask("parked_oldest", flow=flow):
        key, at = (row["topic"], row["partition"]), (row["generation"], row["offset"])
        oldest[key] = min(oldest.get(key, at), at)
    return oldest


def note_removals(lake: Lake, removals: Sequence[Removal], renews: bool = False) -> None:
    """Record what is about to be deleted from the stage, or will not be in it. What is already
    recorded is written again only if this `renews` its time: a process may have died before it
    deleted what it had noted, and a target topic that began since then still got it."""
    fresh = removals if renews else _unknown(lake, removals)
    if fresh:
        lake.change("note_removals", {"removals": Frame.of(_REMOVALS, fresh)})


def _unknown(lake: Lake, removals: Sequence[Removal]) -> list[Removal]:
    clusters = {removal.source_cluster for removal in removals}
    known = {
        (cluster, removal.place): removal
        for cluster in clusters
        for removal in removals_from(lake, cluster)
    }
    fresh = []
    for removal in removals:
        noted = known.get((removal.source_cluster, removal.place))
        if noted is None or not noted.covers(removal):
            fresh.append(removal)
    return fresh


def removals_from(lake: Lake, source_cluster: str) -> list[Removal]:
    """What was ever deleted of a cluster's landed records, or passed over by landing."""
    names = Removal.__dataclass_fields__
    rows = (row for row in lake.ask_table("removals") if row["source_cluster"] == source_cluster)
    return [Removal(**{name: row[name] for name in names}) for row in rows]


def remove_records(lake: Lake, cuts: Sequence[Cut], cutoff_ms: int, dry_run: bool = False) -> int:
    """Delete records landed before a time, below partitions' cuts; returns how many (would be)."""
    if not cuts:
        return 0
    frames = {"cuts": Frame.of(_CUTS, cuts)}
    records = lake.upkeep("records")
    if dry_run:
        (row,) = records.reader.query_rows("removable_records", frames, cutoff_ms=cutoff_ms)
        return int(row["record_count"])
    return records.rewrite("remove_records", frames, cutoff_ms=cutoff_ms).removed


def remove_history(lake: Lake, table: str, cutoff_ms: int) -> int:
    """Delete rows of a table of HISTORY that are older than a time; returns how many."""
    return lake.upkeep(table).rewrite(f"remove_{table}", cutoff_ms=cutoff_ms).removed


def thin_samples(lake: Lake, minutes_before_ms: int, hours_before_ms: int) -> int:
    """Keep one sample a minute of those older than one time, and one an hour of those older than
    another; returns how many were deleted."""
    thinned = lake.upkeep("positions").rewrite(
        "thin_positions", minutes_before_ms=minutes_before_ms, hours_before_ms=hours_before_ms
    )
    return thinned.removed


def merge_map(lake: Lake, cutoff_ms: int, max_segments: int = MAX_SEGMENTS) -> Rewritten:
    """Merge rows of the map from before a time into few; all offset pairs stay. One commit."""
    return lake.upkeep("offset_map").rewrite(
        "merge_map", cutoff_ms=cutoff_ms, max_segments=max_segments
    )


def sizes(lake: Lake) -> dict[str, TableSize]:
    """The size of every table."""
    return {table: lake.upkeep(table).size() for table in TABLES}
