"""Reading the stage's own Parquet files, in a Python worker, in order and without a detour through JVM rows.

Sound only for files of a committed snapshot of a table without deletion vectors and column mapping; the driver asserts
that before it chooses this reader (`produce/flow.py`).
"""

from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as fs
import pyarrow.parquet as pq

from mirrorlake.core.batch import PartitionPlan, ShardPlan

COLUMNS = ["topic", "partition", "offset", "timestamp", "key", "value", "headers", "landed_at"]
#: Rows that are decoded at a time; a bound on memory, not on transactions. Measured on records of 120 B: 3 % less of a
#: worker's CPU than with twice as many; half as many save nothing more.
BATCH_ROWS = 16_384


def open_parquet(uri: str) -> pq.ParquetFile:
    """Open a file as Spark names it: `file:/…` and bare paths locally, any other scheme through Arrow's filesystems.

    Raises OSError (FileNotFoundError included) when this worker cannot open it.
    """
    parsed = urlparse(uri)
    if parsed.scheme in ("", "file"):
        return pq.ParquetFile(unquote(parsed.path), memory_map=True)
    if parsed.scheme == "dbfs" and parsed.path.startswith("/Volumes/"):
        return pq.ParquetFile(unquote(parsed.path))
    filesystem, path = fs.FileSystem.from_uri(uri)
    return pq.ParquetFile(filesystem.open_input_file(path))


def read_shard(shard: ShardPlan) -> Iterator[tuple[PartitionPlan, pa.RecordBatch]]:
    """Yield stretches of rows of the shard's partitions, file by file, in the order in which the files hold them."""
    plans = {(plan.topic, plan.partition): plan for plan in shard.partitions}
    for uri in shard.files:
        with open_parquet(uri) as file:
            groups = [index for index in range(file.num_row_groups) if _may_hold(file, index, plans)]
            if not groups:
                continue
            for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=COLUMNS, use_threads=False):
                yield from split_by_partition(batch, plans)


def _may_hold(file: pq.ParquetFile, group: int, plans: Mapping[tuple[str, int], PartitionPlan]) -> bool:
    """Whether a row group's statistics allow one of the wanted partitions at or above its floor."""
    metadata = file.metadata.row_group(group)
    bounds: dict[str, tuple[object, object]] = {}
    for index in range(metadata.num_columns):
        column = metadata.column(index)
        statistics = column.statistics
        if column.path_in_schema in ("topic", "partition", "offset") and statistics and statistics.has_min_max:
            bounds[column.path_in_schema] = (statistics.min, statistics.max)

    def within(name: str, value: object) -> bool:
        low, high = bounds.get(name, (value, value))
        return bool(low <= value <= high)  # type: ignore[operator]

    newest = bounds.get("offset", (None, None))[1]
    return any(
        within("topic", topic) and within("partition", partition) and (newest is None or newest >= plan.floor.source)  # type: ignore[operator]
        for (topic, partition), plan in plans.items()
    )


def split_by_partition(
    batch: pa.RecordBatch, plans: Mapping[tuple[str, int], PartitionPlan]
) -> Iterator[tuple[PartitionPlan, pa.RecordBatch]]:
    """Cut rows where topic or partition changes, and keep the stretches that are wanted, at or above the floor."""
    if batch.num_rows == 0:
        return
    topics = pc.dictionary_encode(batch.column("topic"))
    codes = topics.indices.to_numpy(zero_copy_only=False)
    partitions = batch.column("partition").to_numpy(zero_copy_only=False)
    changed = np.flatnonzero((codes[1:] != codes[:-1]) | (partitions[1:] != partitions[:-1])) + 1
    starts = np.concatenate(([0], changed))
    ends = np.concatenate((changed, [batch.num_rows]))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        plan = plans.get((topics.dictionary[codes[start]].as_py(), int(partitions[start])))
        if plan is None:
            continue
        stretch = batch.slice(start, end - start)
        offsets = stretch.column("offset").to_numpy(zero_copy_only=False)
        below = int(np.searchsorted(offsets, plan.floor.source)) if offsets[0] < plan.floor.source else 0
        if below < len(offsets):
            yield plan, stretch.slice(below)
