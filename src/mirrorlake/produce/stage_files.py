"""Reading the stage's own Parquet files, in a Python worker, in order and without a detour through
JVM rows.

Sound only for files of a committed snapshot of a table without deletion vectors and column mapping;
the driver asserts that before it chooses this reader (`produce/flow.py`).
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mirrorlake.errors import CountDiffers, FilesUnreadable, LayoutError
from mirrorlake.lake.parquet import RARE, open_parquet
from mirrorlake.lake.row_sizes import grouped
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.batch import PartitionPlan, ShardPlan
from mirrorlake.produce.counted import PlannedRows, Skipped, Stretch, counted, narrowed

COORDINATES = ["source_cluster", "topic", "partition", "generation", "offset"]
#: The content of a record, and the columns by which its latency is measured.
CONTENT = ("timestamp", "key", "value", "headers", "landed_at", "timestamp_ms", "header_names")
COLUMNS = [*COORDINATES, *CONTENT]
#: Text columns whose values repeat in many rows.
_CODED = ("source_cluster", "topic")
#: The most rows decoded at a time, and about the most bytes; a bound on memory, not on
#: transactions. Measured on records of 120 B: 3 % less of a worker's CPU than with twice as many
#: rows; on records of 1 KB: a sixth less of the time of reading than with 16 MB, which Arrow copies
#: again and again while it gathers them.
_BATCH_ROWS, _BATCH_BYTES = 16_384, 4 << 20
#: The most rows of a shard, and bytes, that are read only once and held in memory.
_HELD_ROWS, _HELD_BYTES = 16_384, 4 << 20


def read_shard(shard: ShardPlan, skipped: Skipped) -> PlannedRows:
    """Yield chunks of rows of the shard's partitions, file by file, in the order in which the files
    hold them.

    Raises LayoutError before the first chunk if offsets do not rise, and CountDiffers if there are
    not as many as planned, `skipped` ones aside: later, with some at the target, would be too late.
    That costs an extra reading of the coordinates, a few bytes a record, unless the rows are few
    and held. Raises CountDiffers also if the second reading has another number than the first.
    """
    whole = replace(shard, partitions=tuple(one.of_whole_spans() for one in shard.partitions))
    held = _held(shard)
    rows = _chunks(whole, COORDINATES) if held is None else iter(held)
    try:
        plans = _narrowed(shard.partitions, counted(rows, whole.partitions, skipped))
    except CountDiffers:
        deque(rows, maxlen=0)  # raises LayoutError if offsets fall: then rows are read sorted
        raise
    yield from counted(_chunks(shard, COLUMNS), plans, skipped) if held is None else held


def _held(shard: ShardPlan) -> list[tuple[PartitionPlan, pa.RecordBatch]] | None:
    """All rows of a shard, if they are few and include all records of its spans; else None."""
    if shard.record_count > _HELD_ROWS or any(plan.outside for plan in shard.partitions):
        return None
    plans = {plan.key: plan for plan in shard.partitions}
    read, size = [], 0
    for batch in batches_of(shard, plans, COLUMNS):
        read.append(batch)
        size += batch.nbytes
        if size > _HELD_BYTES:
            return None
    return list(_rows_of(shard, plans, read))


def _narrowed(plans: Sequence[PartitionPlan], rows: PlannedRows) -> list[PartitionPlan]:
    """Plans by the coordinates of all rows of their spans."""
    asked = {plan.key: plan.outside for plan in plans if plan.outside}
    counts: Counter[Stretch] = Counter()
    for plan, chunk in rows:
        for first, last in asked.get(plan.key, ()):
            offsets = chunk.column("offset").to_numpy(zero_copy_only=False)
            start, end = np.searchsorted(offsets, [first, last + 1]).tolist()
            counts[plan.place, first, last] += end - start
    return narrowed(plans, lambda stretches: [counts[stretch] for stretch in stretches])


def _disordered(plan: PartitionPlan, offset: int) -> LayoutError:
    """The error for files that do not hold a partition's offsets in rising order."""
    return LayoutError(
        f"the stage does not hold {plan.topic}-{plan.partition} in rising order near offset "
        f"{offset}; reading it sorted",
        topic=plan.topic,
        partition=plan.partition,
    )


def _chunks(shard: ShardPlan, columns: Sequence[str]) -> PlannedRows:
    plans = {plan.key: plan for plan in shard.partitions}
    return _rows_of(shard, plans, batches_of(shard, plans, columns))


def _rows_of(
    shard: ShardPlan,
    plans: Mapping[TopicAndPartition, PartitionPlan],
    batches: Iterable[pa.RecordBatch],
) -> PlannedRows:
    of_cluster = (_of_cluster(batch, shard.source_cluster) for batch in batches)
    return rows_by_partition(gathered(of_cluster), plans)


def batches_of(
    shard: ShardPlan, plans: Mapping[TopicAndPartition, PartitionPlan], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Some columns of a shard's files, file by file, from the row groups that may hold rows of the
    plans. Raises FilesUnreadable; FileNotFoundError for a file that is gone."""
    for uri in shard.files:
        with open_file(uri, shard.storage) as file:
            groups = [index for index in range(file.num_row_groups) if may_hold(file, index, plans)]
            if not groups:
                continue
            rows = batch_rows(file, groups) if "value" in columns else _BATCH_ROWS
            there = columns_of(file, groups, columns)
            yield from file.iter_batches(rows, row_groups=groups, columns=there, use_threads=False)


def columns_of(file: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str]) -> list[str]:
    """Some columns, without those that are known to be null in all the row groups."""
    if RARE.keys().isdisjoint(columns):
        return list(columns)
    row_groups = [file.metadata.row_group(index) for index in groups]
    empty = {
        name for name, path in RARE.items() if all(_is_null(group, path) for group in row_groups)
    }
    return [name for name in columns if name not in empty]


def _is_null(group: pq.RowGroupMetaData, path: str) -> bool:
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema == path:
            statistics = column.statistics
            return (
                statistics is not None
                and statistics.has_null_count
                and statistics.null_count == column.num_values
            )
    return False


def batch_rows(file: pq.ParquetFile, groups: Sequence[int]) -> int:
    """How many whole rows of some row groups to decode at a time."""
    row_groups = [file.metadata.row_group(index) for index in groups]
    size = sum(group.total_byte_size for group in row_groups)
    rows = sum(group.num_rows for group in row_groups)
    return int(min(_BATCH_ROWS, max(1, _BATCH_BYTES * rows // max(1, size))))


def open_file(uri: str, storage: Mapping[str, str] | None) -> pq.ParquetFile:
    """Open a file of the stage. Raises FilesUnreadable; FileNotFoundError if only this is gone."""
    try:
        return open_parquet(uri, _CODED, storage)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise FilesUnreadable(
            f"a worker cannot open {uri}: {error}; Spark has to read it"
        ) from error


def _of_cluster(batch: pa.RecordBatch, source_cluster: str) -> pa.RecordBatch:
    """The rows of one source cluster: OPTIMIZE may have put those of several into a file."""
    clusters = _coded(batch.column("source_cluster"))
    if clusters.dictionary.to_pylist() == [source_cluster] and not clusters.null_count:
        return batch
    return batch.filter(pc.equal(clusters.dictionary_decode(), source_cluster))


def _coded(column: pa.Array) -> pa.DictionaryArray:
    """A text column as a dictionary array; a column read from the stage's files is one already."""
    return column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)


def may_hold(
    file: pq.ParquetFile, group: int, plans: Mapping[TopicAndPartition, PartitionPlan]
) -> bool:
    """Whether a row group may, by its statistics, hold a wanted partition within its offsets."""
    metadata = file.metadata.row_group(group)
    bounds: dict[str, tuple[object, object]] = {}
    for index in range(metadata.num_columns):
        column = metadata.column(index)
        statistics = column.statistics
        if (
            column.path_in_schema in ("topic", "partition", "offset")
            and statistics
            and statistics.has_min_max
        ):
            bounds[column.path_in_schema] = (statistics.min, statistics.max)

    def within(name: str, first: object, last: object) -> bool:
        low, high = bounds.get(name, (first, last))
        return bool(low <= last and first <= high)  # type: ignore[operator]

    return any(
        within("topic", topic, topic)
        and within("partition", partition, partition)
        and within("offset", plan.first, plan.last)
        for (topic, partition), plan in plans.items()
    )


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows with small batches joined into few larger ones, in which each partition's rows
    stand together, in the order in which they came. Landing twice a second over hundreds of
    partitions puts some rows of each into each file, and every chunk costs a producer as much as
    some hundred rows. Columns of other types, by another engine, stay by themselves."""
    most = _BATCH_ROWS, _BATCH_BYTES
    windows = grouped(batches, lambda one: (one.num_rows, one.nbytes), _are_alike, most)
    return map(_together, windows)


def _are_alike(one: pa.RecordBatch, other: pa.RecordBatch) -> bool:
    """Whether columns that both have are of the same types."""
    first, second = one.schema, other.schema
    shared = set(first.names) & set(second.names) if first != second else ()
    return all(first.field(name).type == second.field(name).type for name in shared)


def _together(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    tables = [pa.Table.from_batches([_with_codes(batch)]) for batch in batches]
    table = pa.concat_tables(tables, promote_options="default").unify_dictionaries()
    (batch,) = table.combine_chunks().to_batches() or (batches[0].slice(0, 0),)
    keys = [
        pc.fill_null(batch.column("generation"), 0),
        batch.column("partition"),
        batch.column("topic").indices,
    ]
    order = np.lexsort([key.to_numpy(zero_copy_only=False) for key in keys])  # is stable
    return batch.take(pa.array(order))


def _with_codes(batch: pa.RecordBatch) -> pa.RecordBatch:
    at = batch.schema.get_field_index("topic")
    return batch.set_column(at, "topic", _coded(batch.column("topic")))


def rows_by_partition(
    batches: Iterable[pa.RecordBatch], plans: Mapping[TopicAndPartition, PartitionPlan]
) -> PlannedRows:
    """Rows cut where topic, partition or generation changes: the wanted chunks, within their plan's
    offsets. Raises LayoutError if a partition's offsets do not rise."""
    reached: dict[TopicAndPartition, int] = {}
    for batch in batches:
        for plan, cut in _cut(batch, plans):
            if cut.first <= reached.get(plan.key, -1):
                raise _disordered(plan, cut.first)
            reached[plan.key] = cut.last
            yield plan, batch.slice(cut.start, cut.end - cut.start)


class _Cut(NamedTuple):
    """Rows `start` to `end` (exclusive) of a batch, and their first and last offsets."""

    start: int
    end: int
    first: int
    last: int


def _cut(
    batch: pa.RecordBatch, plans: Mapping[TopicAndPartition, PartitionPlan]
) -> Iterator[tuple[PartitionPlan, _Cut]]:
    """The rows of each plan, compared for all at once: a batch may have few of many partitions."""
    if batch.num_rows == 0:
        return
    topics = _coded(batch.column("topic"))
    codes = topics.indices.to_numpy(zero_copy_only=False)
    partitions = batch.column("partition").to_numpy(zero_copy_only=False)
    generations = pc.fill_null(batch.column("generation"), 0).to_numpy(zero_copy_only=False)
    offsets = batch.column("offset").to_numpy(zero_copy_only=False)
    changed = codes[1:] != codes[:-1]
    for column in (partitions, generations):
        changed |= column[1:] != column[:-1]
    falls = np.flatnonzero((offsets[1:] <= offsets[:-1]) & ~changed) + 1
    starts = np.concatenate(([0], np.flatnonzero(changed) + 1))
    ends = np.append(starts[1:], batch.num_rows)
    names = topics.dictionary.to_pylist()
    of_each = (codes[starts], partitions[starts], generations[starts], starts, ends)
    for code, partition, generation, start, end in zip(
        *(column.tolist() for column in of_each), strict=True
    ):
        plan = plans.get((names[code], partition))
        if plan is not None and plan.generation == generation:
            if len(falls) and np.any((falls > start) & (falls < end)):
                # a search in offsets that do not rise would lose rows
                raise _disordered(plan, int(offsets[start]))
            cut = _in_range(plan, offsets, start, end)
            if cut.start < cut.end:
                yield plan, cut


def _in_range(plan: PartitionPlan, offsets: np.ndarray, start: int, end: int) -> _Cut:
    """The rows within a plan's range of offsets."""
    first, last = int(offsets[start]), int(offsets[end - 1])
    if first < plan.first or last > plan.last:
        bounds = np.searchsorted(offsets[start:end], [plan.first, plan.last + 1])
        start, end = (start + int(bound) for bound in bounds)
        if start < end:
            first, last = int(offsets[start]), int(offsets[end - 1])
    return _Cut(start, end, first, last)
