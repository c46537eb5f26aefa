"""Rows of `records` from records of a source: as columns of a file, or in the form Spark takes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.errors import StagingError
from mirrorlake.kafka.log import read_ranges
from mirrorlake.kafka.refusals import silence_in_words
from mirrorlake.lake.row_sizes import arrow_bytes
from mirrorlake.landing.job import LandJob, Part
from mirrorlake.landing.receipts import receipt
from mirrorlake.native.exact import split_times
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.spark.tasks import by_number

#: About how many Arrow bytes are handed to Spark at once: each batch has a fixed cost.
HANDED_BYTES = 2 << 20
#: The column that Spark adds to rows by itself, for less than it costs to read it. For one that
#: differs from batch to batch it would compile code of its own each time.
ADDED_BY_SPARK = "source_cluster"
#: Columns that are never null in a staged record, of those that tasks read.
NEVER_NULL = frozenset(
    "topic partition offset timestamp_type landed_at batch_id generation batch_end".split()
)
#: The value of `partition` in the last row that a task gives, which is no record: its `topic` lists
#: what the task has read (`receipts.receipt`).
PART_DONE = -1
#: Errors of values that a column does not take.
_UNSTAGEABLE = (pa.ArrowException, ArithmeticError, ValueError)

Read = Iterable[tuple[TopicAndPartition, pa.RecordBatch]]
Gathered = Mapping[TopicAndPartition, list[pa.RecordBatch]]
Sizes = Counter[TopicAndPartition]


def read_part(job: LandJob, part: Part) -> Read:
    """Read a task's part by its process's Kafka client. Raises KafkaException, ClusterUnusable."""
    with silence_in_words(job.alias, job.client):
        yield from read_ranges(job.alias, job.client, part.ranges, part.small_answers)


def gathered(job: LandJob, read: Read, size: int) -> Iterator[tuple[Gathered, Sizes]]:
    """The rows read, without those that the job leaves out, by partition, with the bytes of each:
    about `size` Arrow bytes at a time."""
    waiting, sizes, waits = dict[TopicAndPartition, list[pa.RecordBatch]](), Sizes(), 0
    for key, rows in read:
        if key in job.forgotten:
            from mirrorlake.lake.forgotten import without_forgotten  # only landing again needs it

            rows = without_forgotten(rows, job.forgotten[key])
        if rows.num_rows:
            waiting.setdefault(key, []).append(rows)
            own = arrow_bytes(rows)
            sizes[key], waits = sizes[key] + own, waits + own
        if waits >= size:
            yield waiting, sizes
            waiting, sizes, waits = {}, Sizes(), 0
    if waiting:
        yield waiting, sizes


def rows_of_parts(
    job: LandJob, parts: Sequence[Part], numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of parts that Spark names (mapInArrow). Raises as `read_part` and `row_batches`."""
    for part, _ in by_number(numbers, parts):
        yield from row_batches(job, part, read_part(job, part))


def row_batches(job: LandJob, part: Part, read: Read) -> Iterator[pa.RecordBatch]:
    """The rows of a part, for Spark: each partition's in the order of offsets, and at the end one
    with PART_DONE. Raises StagingError."""
    schema = schema_for_spark(job.schema)
    for waiting, _ in gathered(job, read, HANDED_BYTES):
        yield from _for_spark(schema, part, waiting)
    done: dict[str, object] = {**dict.fromkeys(NEVER_NULL, 0), "partition": PART_DONE}
    done["topic"] = receipt(part.ranges)
    yield pa.RecordBatch.from_pylist([done], schema)


def schema_for_spark(schema: pa.Schema) -> pa.Schema:
    """The columns of `records` that are handed to Spark, as it declares them: from version 4.2 on
    Spark compares each batch with them, nullability included."""
    return pa.schema(
        [
            field.with_nullable(field.name not in NEVER_NULL)
            for field in schema
            if field.name != ADDED_BY_SPARK
        ]
    )


def _for_spark(schema: pa.Schema, part: Part, waiting: Gathered) -> list[pa.RecordBatch]:
    rows = columns_of_records(schema, part, dict(sorted(waiting.items())))
    return [
        pa.RecordBatch.from_arrays([_decoded(column) for column in batch.columns], schema=schema)
        for batch in rows.to_batches()
    ]


def columns_of_records(schema: pa.Schema, part: Part, read: Gathered) -> pa.Table:
    """Columns of `records` for rows of partitions, one partition after the other, by a schema; some
    partitions may have a column that others lack. Values that all rows of a partition share are
    dictionary-encoded (`_coded`). Raises StagingError, which names a record."""
    try:
        return _columns(schema, part, read)
    except _UNSTAGEABLE as error:
        (topic, partition), offset = _first_unstageable(schema, part, read)
        raise StagingError(
            f"{topic}-{partition} cannot be staged from offset {offset}, since its record cannot "
            f"be: {error}",
            topic=topic,
            partition=partition,
            first_offset=offset,
            last_offset=offset,
        ) from error


def _first_unstageable(
    schema: pa.Schema, part: Part, read: Gathered
) -> tuple[TopicAndPartition, int]:
    """The first record, by partition, that cannot be made a row; if each can, the first of all."""

    def is_refused(key: TopicAndPartition, rows: pa.RecordBatch) -> bool:
        try:
            _columns(schema, part, {key: [rows]})
        except _UNSTAGEABLE:
            return True
        return False

    pieces = [(key, rows) for key, batches in read.items() for rows in batches]
    key, rows = next((piece for piece in pieces if is_refused(*piece)), pieces[0])
    while rows.num_rows > 1:
        front = rows.slice(0, rows.num_rows // 2)
        rows = front if is_refused(key, front) else rows.slice(front.num_rows)
    return key, int(rows.column("offset")[0].as_py())


def _columns(schema: pa.Schema, part: Part, read: Gathered) -> pa.Table:
    """Columns of rows, with those that all rows of a partition share. Raises ValueError for a null
    in a column that the schema declares NOT NULL: neither Spark nor delta-rs checks that."""
    tables = [pa.Table.from_batches([rows]) for batches in read.values() for rows in batches]
    rows = pa.concat_tables(tables, promote_options="default")
    if len(read) > 1:
        # for hundreds of small partitions, many chunks per column cost more than a copy
        rows = rows.combine_chunks()
    _check_names(rows["headers"])
    times, exact = split_times(rows["timestamp"])
    columns_read = dict(zip(rows.column_names, rows.columns, strict=True))
    columns_read |= {"timestamp": times, "timestamp_ms": exact}
    of_partitions = [part.columns(key) for key in read]
    counts = [sum(batch.num_rows for batch in batches) for batches in read.values()]
    columns = []
    for field in schema:
        column = columns_read.get(field.name)
        if column is None or field.name in of_partitions[0]:
            values = [same.get(field.name) for same in of_partitions]
            columns.append(_coded(values, counts, field.type))
        else:
            columns.append(column if column.type == field.type else column.cast(field.type))
        if not field.nullable and columns[-1].null_count:
            raise ValueError(f"its {field.name} is null")
    return pa.table(columns, schema.names)


def _coded(values: Sequence[object], counts: Sequence[int], kind: pa.DataType) -> pa.Array:
    """Values, each repeated by its count, as a dictionary array: runs of one code in a file. Nulls
    if there is no other value, since Parquet's writer takes no null in a dictionary."""
    codes = {value: code for code, value in enumerate(dict.fromkeys(values)) if value is not None}
    if len(codes) < len(set(values)):
        if codes:
            raise ValueError("some partitions have a value that others lack")
        return pa.nulls(sum(counts), kind)
    numbers = np.zeros(sum(counts), np.int32)
    if len(codes) > 1:
        numbers = np.repeat(np.array([codes[value] for value in values], np.int32), counts)
    return pa.DictionaryArray.from_arrays(numbers, pa.array(codes, kind))


def _check_names(headers: pa.ChunkedArray) -> None:
    """Raises ValueError for a header without its name (`kafka/log.py: Log.read`)."""
    if headers.null_count == len(headers):
        return
    names = pc.struct_field(pc.list_flatten(headers), "key")
    if names.null_count:
        raise ValueError(
            "a name of its headers is no UTF-8, which only the compiled part of mirrorlake reads"
        )


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
