"""Rows of `checkpoints`: positions of consumer groups, translated, and what became of them at the target."""

from collections.abc import Sequence
from datetime import datetime, timezone

from mirrorlake.groups.checkpoint_plan import Checkpoint, GroupPartition
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader


def newest_checkpoints(lake: Reader, flow: str) -> dict[GroupPartition, tuple[Checkpoint, datetime]]:
    """The newest checkpoint of every group and partition of a flow, with the time (UTC) it was written."""
    found = {}
    for values in lake.query_rows("newest_checkpoints", flow=flow):
        at = values.pop("checkpointed_at").replace(tzinfo=timezone.utc)
        checkpoint = Checkpoint(**{**values, "metadata": values["metadata"] or ""})
        found[checkpoint.group_partition] = (checkpoint, at)
    return found


def append_checkpoints(
    lake: Lake, flow: str, checkpoints: Sequence[Checkpoint], read_at: datetime | None = None
) -> None:
    """Append rows, as of now; `read_at` is when the source was asked for the positions."""
    now = datetime.now(timezone.utc)
    common = {"flow": flow, "checkpointed_at": now, "read_at": read_at}
    rows = [{**common, **vars(checkpoint)} for checkpoint in checkpoints]
    lake.append("checkpoints", rows_of("checkpoints", rows))
