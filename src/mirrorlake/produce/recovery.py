"""What a task makes of staged rows that the target has already: the rows of the map that were lost
with a process, or that an older lake never had, found before anything behind them is written."""

import time
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from mirrorlake.errors import MapBehind, MapUnknown
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.runs import rebuild
from mirrorlake.produce.older_lake import OLDER
from mirrorlake.produce.report import Progress, Refused, measure

#: Reads committed records of a target partition, from an offset to below another (None: the end).
ReadTarget = Callable[[TopicAndPartition, int, int | None], Iterable[pa.RecordBatch]]


def put_aside(state: Progress, rows: pa.RecordBatch, offsets: np.ndarray) -> None:
    """Rows of a partition that are below the position that the target has."""
    if state.by_content is not None:
        state.by_content.add(rows)
        return
    state.rebuilt.append(offsets)
    measure(state, rows, time.time_ns() // 1_000_000)


def recover(state: Progress, read: ReadTarget) -> None:
    """Find where the target has what was put aside, once. A partition of which that is not known
    stops in front of it. Raises what `read` does."""
    if state.recovered is not None or state.is_unknown:
        return
    plan, last = state.plan, state.position - 1
    if state.by_content is not None:
        try:
            state.recovered = state.by_content.find(read(plan.target_key, *state.by_content.bounds))
        except MapUnknown as error:
            state.refused = Refused(
                error.first_offset or 0, error.last_offset or 0, error.message, error.incident_kind
            )
        return
    offsets = np.concatenate([np.empty(0, np.int64), *state.rebuilt])
    try:
        state.recovered, state.left = rebuild(offsets, state.lost)
        if state.left and plan.last >= last:
            missing = sum(written.record_count for written in state.left)
            raise ValueError(f"the stage lacks {missing} records that the target took")
    except ValueError as error:
        state.recovered, state.left = None, []
        text = (
            f"{OLDER}: the target took {plan.topic}-{plan.partition} up to source offset {last}, "
            f"the map ends in front of {plan.floor.source}, and {error}; where they are is found "
            f"by their content, once the stage has all up to offset {last} again"
        )
        state.refused = Refused(plan.first, last, text, MapBehind.incident_kind)
