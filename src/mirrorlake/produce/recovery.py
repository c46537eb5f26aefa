"""What a task makes of staged rows that the target has already: the rows of the map that were lost
with a process, or that an older lake never had, found before anything behind them is written."""

import time
from collections.abc import Iterable
from typing import Protocol

import numpy as np
import pyarrow as pa

from mirrorlake.errors import MapBehind, MapUnknown
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.runs import rebuild
from mirrorlake.produce.older_lake import OLDER
from mirrorlake.produce.report import Progress, Refused, measure


class TargetLog(Protocol):
    """What a target partition holds; `produce.writer.ShardWriter` is one."""

    def end(self, key: TopicAndPartition) -> int: ...

    def records_from(
        self, key: TopicAndPartition, start: int, end: int | None
    ) -> Iterable[pa.RecordBatch]: ...


def put_aside(state: Progress, rows: pa.RecordBatch, offsets: np.ndarray) -> None:
    """Rows of a partition that are below the position that the target has."""
    if state.by_content is not None:
        state.by_content.add(rows)
        return
    state.rebuilt.append(offsets)
    measure(state, rows, time.time_ns() // 1_000_000)


def recover(state: Progress, log: TargetLog) -> None:
    """Find where the target has what was put aside, once. A partition of which that is not known
    stops in front of it. Raises what `log` does."""
    if state.recovered is not None or state.is_unknown:
        return
    plan, last = state.plan, state.position - 1
    if state.by_content is not None:
        records = log.records_from(plan.target_key, *state.by_content.bounds)
        try:
            state.recovered = state.by_content.find(records)
        except MapUnknown as error:
            end = log.end(plan.target_key)
            state.refused = Refused(plan.first, last, error.message, error.incident_kind, end)
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
        end = log.end(plan.target_key)
        state.refused = Refused(plan.first, last, text, MapBehind.incident_kind, end)
