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
    state.rebuilt.append(offsets)
    if state.by_content is not None:
        state.by_content.add(rows)
    measure(state, rows, time.time_ns() // 1_000_000)


def recover(state: Progress, log: TargetLog) -> None:
    """Find where the target has what was put aside, once: by the metadata of the position, else by
    content. A partition of which that is not known stops in front of it. Raises what `log` does."""
    if state.recovered is not None or state.is_unknown:
        return
    plan, last = state.plan, state.position - 1
    offsets = np.concatenate([np.empty(0, np.int64), *state.rebuilt])
    try:
        state.recovered = rebuild(offsets, state.lost)
    except ValueError as error:
        text = (
            f"{OLDER}, which took {plan.topic}-{plan.partition} up to source offset {last}, while "
            f"the map ends in front of {plan.floor.source}: {error}; where they are is found by "
            f"their content once the stage has all up to offset {last}"
        )
        kind = MapBehind.incident_kind
        if state.by_content is not None:
            records = log.records_from(plan.target_key, *state.by_content.bounds)
            try:
                state.recovered = state.by_content.find(records)
                return
            except MapUnknown as unknown:
                text, kind = unknown.message, unknown.incident_kind
        state.refused = Refused(plan.first, last, text, kind, log.end(plan.target_key))
