"""Rows of `checkpoints`: translated positions of groups, and their outcomes at the target."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone

from mirrorlake.groups.checkpoint_plan import (
    EXCLUDED,
    GONE,
    LEFT_OF_LATE,
    NAMELESS,
    OTHER_KIND,
    Checkpoint,
    GroupPartition,
)
from mirrorlake.lake.changes import HISTORY_DELETED, WHOLE_LAKE, ChangeLog
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.rising_times import next_time, time_behind
from mirrorlake.offsets.positions import Committed, TopicAndPartition

#: For how many days a group that has left its cluster is reported.
LEFT_DAYS = 7
#: The place of a group that is left out, and whose positions no client reports.
NO_PLACE: TopicAndPartition = ("", -1)


def newest_checkpoints(
    lake: Reader, flow: str
) -> dict[GroupPartition, tuple[Checkpoint, datetime]]:
    """A flow's newest checkpoint of every group and partition, with the time (UTC) of writing."""
    newest = {}
    nowhere = {"target_topic": "", "target_position": -1}
    for values in lake.query_rows("newest_checkpoints", flow=flow):
        at = values.pop("checkpointed_at").replace(tzinfo=timezone.utc)
        place = nowhere if values["target_position"] is None else {}
        checkpoint = Checkpoint(**{**values, **place, "metadata": values["metadata"] or ""})
        newest[checkpoint.group_partition] = (checkpoint, at)
    return newest


def positions_as_of(
    lake: Reader, cluster: str, until_ms: int
) -> dict[GroupPartition, tuple[Committed, int | None]]:
    """Where the groups of a source cluster stood at a time, in ms, as far as any flow from there
    had read it by then; with the topic's generation (None: an earlier version did not note it)."""
    rows = lake.query_rows(
        "group_positions_as_of", prefix=f"{cluster}->", until_ms=until_ms, gone=GONE
    )
    return {
        (row["group_id"], row["topic"], row["partition"]): (
            Committed(row["source_position"], row["metadata"]),
            row["generation"],
        )
        for row in rows
    }


def positions_since(lake: Reader, cluster: str, until_ms: int) -> dict[GroupPartition, datetime]:
    """Where the groups of a source cluster have positions, though no flow had read any by a time,
    in ms; with the time (UTC) of the first checkpoint there is."""
    rows = lake.query_rows("group_positions_since", prefix=f"{cluster}->", until_ms=until_ms)
    return {
        (row["group_id"], row["topic"], row["partition"]): row["first_at"].replace(
            tzinfo=timezone.utc
        )
        for row in rows
    }


def deleted_before(log: ChangeLog) -> datetime | None:
    """Checkpoints that are older may have been deleted, as history; None where none was."""
    noted = [
        change.after
        for change in log.history(WHOLE_LAKE, HISTORY_DELETED)
        if change.resource == "checkpoints" and change.after
    ]
    return datetime.fromisoformat(max(noted)) if noted else None


def append_checkpoints(
    lake: Lake,
    flow: str,
    checkpoints: Sequence[Checkpoint],
    read_at: datetime | None = None,
    *,
    newest: datetime | None,
) -> datetime:
    """Append rows with the current time, later than `newest`, the time of the newest row there;
    return that time. `read_at` is when the source was queried for the positions."""
    now = time_behind(newest)
    common = {"flow": flow, "checkpointed_at": now, "read_at": read_at}
    nowhere = {"target_topic": None, "target_position": None}
    rows = [
        {**common, **vars(checkpoint), **({} if checkpoint.has_counterpart else nowhere)}
        for checkpoint in checkpoints
    ]
    lake.append("checkpoints", rows_of("checkpoints", rows))
    return now


def recently_left(
    newest: Mapping[GroupPartition, tuple[Checkpoint, datetime]], selects: Callable[[str], bool]
) -> dict[str, str]:
    """Groups that have lost all their positions within LEFT_DAYS, each with a sentence: in a
    failing cluster the groups' coordinator may be lost first."""
    there = {key[0] for key, (checkpoint, _) in newest.items() if not checkpoint.is_gone}
    since = datetime.now(timezone.utc) - timedelta(days=LEFT_DAYS)
    left: dict[str, datetime] = {}
    for (group, *_), (_, at) in newest.items():
        if group not in there and at >= since and selects(group):
            left[group] = max(at, left.get(group, at))
    return {group: LEFT_OF_LATE.format(at) for group, at in sorted(left.items())}


def left_out_groups(lake: Reader, flow: str) -> dict[str, dict[str, TopicAndPartition]]:
    """The groups that a flow has noted as left out, each with its place there, by reason."""
    noted: dict[str, dict[str, TopicAndPartition]] = {EXCLUDED: {}, OTHER_KIND: {}, NAMELESS: {}}
    for row in lake.query_rows("left_out_groups", flow=flow):
        if row["reason"] in noted:
            noted[row["reason"]][row["group_id"]] = row["topic"], row["partition"]
    return noted


def note_left_out(
    lake: Lake, flow: str, noted: Sequence[tuple[str, Mapping[str, TopicAndPartition]]]
) -> None:
    """Note a reason with the groups that a flow leaves out for it, or GONE with those for which
    that is over. The rows have no position, since those of such groups are not followed. A place is
    one partition in which a group has a position, or NO_PLACE."""
    if not any(groups for _, groups in noted):
        return
    at = next_time(lake.now, "newest_checkpoint")
    common = {"flow": flow, "checkpointed_at": at, "synced": False}
    rows = [
        {**common, "group_id": group, "topic": topic, "partition": partition, "reason": reason}
        for reason, groups in noted
        for group, (topic, partition) in groups.items()
    ]
    lake.append("checkpoints", rows_of("checkpoints", rows))
