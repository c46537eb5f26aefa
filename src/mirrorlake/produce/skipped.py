"""Records that an operator gave up, because the target refuses them (`mirrorlake resolve --choice skip`)."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.batch import PartitionPlan

#: By source partition: ranges of offsets, first and last inclusive.
Skipped = Mapping[TopicAndPartition, tuple[tuple[int, int], ...]]
Rows = Iterator[tuple[PartitionPlan, pa.RecordBatch]]


def without(rows: Rows, skipped: Skipped) -> Rows:
    """Leave out the records given up. They stay in the stage and get no row in the map."""
    for plan, chunk in rows:
        ranges = skipped.get((plan.topic, plan.partition), ())
        if ranges:
            offsets = chunk.column("offset").to_numpy(zero_copy_only=False)
            kept = np.ones(len(offsets), dtype=bool)
            for first, last in ranges:
                kept &= (offsets < first) | (offsets > last)
            chunk = chunk.filter(pa.array(kept))
        if chunk.num_rows:
            yield plan, chunk
