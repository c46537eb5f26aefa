"""Rows of `checkpoints`: positions of consumer groups, translated, and what became of them at the target."""

from collections.abc import Sequence
from datetime import datetime, timezone

import pyarrow as pa

from mirrorlake.groups.checkpoint_plan import Checkpoint, GroupPartition
from mirrorlake.lake.lake import Lake, arrow_table
from mirrorlake.lake.reader import Reader

_CHECKPOINTS = pa.schema(
    [
        ("flow", pa.string()),
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("source_position", pa.int64()),
        ("target_topic", pa.string()),
        ("target_position", pa.int64()),
        ("metadata", pa.string()),
        ("checkpointed_at", pa.timestamp("us", tz="UTC")),
        ("synced", pa.bool_()),
        ("reason", pa.string()),
        ("read_at", pa.timestamp("us", tz="UTC")),
        ("target_generation", pa.int32()),
    ]
)


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
    lake.append("checkpoints", arrow_table(rows, _CHECKPOINTS))
