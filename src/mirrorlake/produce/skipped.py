"""Records that are left out, because the target refuses them: an operator gave them up (`mirrorlake
resolve --choice skip`), or they are parked (`produce/parking.py`)."""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.ranges import are_in, merged
from mirrorlake.produce.batch import PartitionPlan

#: By source partition: ranges of offsets, first and last inclusive.
Skipped = Mapping[TopicAndPartition, tuple[tuple[int, int], ...]]
#: Rows of a shard, each batch with the plan of its partition.
PlannedRows = Iterator[tuple[PartitionPlan, pa.RecordBatch]]


def without_skipped(rows: PlannedRows, skipped: Skipped) -> PlannedRows:
    """Leave out skipped records. They stay in the stage and get no row in the map."""
    wanted_not = {key: merged(ranges) for key, ranges in skipped.items() if ranges}
    for plan, chunk in rows:
        if ranges := wanted_not.get(plan.key):
            offsets = chunk.column("offset").to_numpy(zero_copy_only=False)
            chunk = chunk.filter(pa.array(~are_in(ranges, offsets)))
        if chunk.num_rows:
            yield plan, chunk
