"""Records that are left out, because the target refuses them: an operator gave them up (`mirrorlake
resolve --choice skip`), or they are parked (`produce/parking.py`)."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.batch import PartitionPlan

#: By source partition: ranges of offsets, first and last inclusive.
Skipped = Mapping[TopicAndPartition, tuple[tuple[int, int], ...]]
#: Rows of a shard, each batch with the plan of the partition that it is of.
PlannedRows = Iterator[tuple[PartitionPlan, pa.RecordBatch]]


def without_skipped(rows: PlannedRows, skipped: Skipped) -> PlannedRows:
    """Leave out what is skipped. It stays in the stage and gets no row in the map."""
    bounds = {key: _bounds(ranges) for key, ranges in skipped.items() if ranges}
    for plan, chunk in rows:
        skipped_bounds = bounds.get((plan.topic, plan.partition))
        if skipped_bounds is not None:
            firsts, lasts = skipped_bounds
            offsets = chunk.column("offset").to_numpy(zero_copy_only=False)
            before = np.searchsorted(firsts, offsets, side="right") - 1
            chunk = chunk.filter(pa.array((before < 0) | (offsets > lasts[before])))
        if chunk.num_rows:
            yield plan, chunk


def _bounds(ranges: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """The first offsets in order, and for each the highest last one so far: ranges may overlap."""
    firsts, lasts = np.array(sorted(ranges), dtype=np.int64).T
    return firsts, np.maximum.accumulate(lasts)
