"""Rows of `records` from what was read of a source: in a file's columns, or as Spark takes them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.errors import StagingError
from mirrorlake.kafka.log import read_ranges
from mirrorlake.kafka.refusals import silence_in_words
from mirrorlake.landing.job import LandJob, Part
from mirrorlake.native.exact import split_times
from mirrorlake.offsets.positions import TopicAndPartition, offset_count

#: Arrow's bytes that are handed to Spark together, about: each batch costs a fixed time.
HANDED_BYTES = 2 << 20
#: Columns that Spark adds to rows by itself, for less than it takes to read them.
ADDED_BY_SPARK = ("source_cluster", "landed_at")
#: Columns that each staged record has, of those that it is read with.
NEVER_NULL = frozenset(
    "topic partition offset timestamp_type batch_id generation batch_end".split()
)
#: In the column `partition`: the row is the last one that a task gives, and no record. `offset` is
#: how many offsets it has read.
PART_DONE = -1
#: What is raised for values that a column does not take.
_UNSTAGEABLE = (pa.ArrowException, ArithmeticError, ValueError)

Read = Iterable[tuple[TopicAndPartition, pa.RecordBatch]]
Gathered = Mapping[TopicAndPartition, list[pa.RecordBatch]]
#: One value as often as there are rows.
Repeat = Callable[[object, pa.DataType, int], pa.Array]


def read_part(job: LandJob, part: Part) -> Read:
    """What a task reads, by its process's client of the source. Raises KafkaException, and
    ClusterUnusable for a cluster of which nothing answers."""
    with silence_in_words(job.alias, job.client):
        yield from read_ranges(job.alias, job.client, part.ranges, part.small_answers)


def gathered(job: LandJob, read: Read, size: int) -> Iterator[Gathered]:
    """What was read, without what a job is to leave out, by partition: about so many of Arrow's
    bytes at a time."""
    waiting, waits = dict[TopicAndPartition, list[pa.RecordBatch]](), 0
    for key, rows in read:
        if key in job.forgotten:
            from mirrorlake.lake.forgotten import without_forgotten  # only landing again needs it

            rows = without_forgotten(rows, job.forgotten[key])
        if rows.num_rows:
            waiting.setdefault(key, []).append(rows)
            waits += rows.nbytes
        if waits >= size:
            yield waiting
            waiting, waits = {}, 0
    if waiting:
        yield waiting


def rows_of_parts(
    job: LandJob, parts: Sequence[Part], numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of those parts whose numbers Spark hands over (mapInArrow). Raises what `read_part`
    and `row_batches` do."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from row_batches(job, parts[number], read_part(job, parts[number]))


def row_batches(job: LandJob, part: Part, read: Read) -> Iterator[pa.RecordBatch]:
    """The rows of a part, for Spark: those of a partition in the order of their offsets; at the end
    one of PART_DONE. Raises StagingError."""
    schema = schema_for_spark(job.schema)
    for waiting in gathered(job, read, HANDED_BYTES):
        yield from _for_spark(schema, part, waiting)
    done: dict[str, object] = {**dict.fromkeys(NEVER_NULL, 0), "topic": "", "partition": PART_DONE}
    done["offset"] = offset_count(part.ranges)
    yield pa.RecordBatch.from_pylist([done], schema)


def schema_for_spark(schema: pa.Schema) -> pa.Schema:
    """The columns of `records` that Spark is handed, as it declares them: from its version 4.2 on
    it compares them with each batch, what may be null included."""
    return pa.schema(
        [
            field.with_nullable(field.name not in NEVER_NULL)
            for field in schema
            if field.name not in ADDED_BY_SPARK
        ]
    )


def _for_spark(schema: pa.Schema, part: Part, waiting: Gathered) -> list[pa.RecordBatch]:
    staged = [
        columns_of_records(schema, part, key, waiting[key], _plainly) for key in sorted(waiting)
    ]
    rows = staged[0] if len(staged) == 1 else pa.concat_tables(staged).combine_chunks()
    return [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows.to_batches()]


def columns_of_records(
    schema: pa.Schema,
    part: Part,
    key: TopicAndPartition,
    read: list[pa.RecordBatch],
    repeat: Repeat,
) -> pa.Table:
    """Columns of `records`, those of a schema, for rows of one partition of which some may have a
    column that others lack. Raises StagingError, which names it and the record."""
    tables = (pa.Table.from_batches([batch]) for batch in read)
    rows, same = pa.concat_tables(tables, promote_options="default"), part.columns(key)
    try:
        return _columns(schema, same, rows, repeat)
    except _UNSTAGEABLE as error:
        while rows.num_rows > 1:  # the first record of which none can be made, where there is one
            middle = rows.num_rows // 2
            try:
                _columns(schema, same, rows.slice(0, middle), repeat)
                rows = rows.slice(middle)
            except _UNSTAGEABLE:
                rows = rows.slice(0, middle)
        offset = int(rows["offset"][0].as_py())
        raise StagingError(
            f"{key[0]}-{key[1]} cannot be staged from offset {offset}, since its record cannot "
            f"be: {error}",
            topic=key[0],
            partition=key[1],
            first_offset=offset,
            last_offset=offset,
        ) from error


def _columns(
    schema: pa.Schema, same: Mapping[str, object], rows: pa.Table, repeat: Repeat
) -> pa.Table:
    """Columns of rows, and those that are the `same` for all. Raises ValueError for a null where
    the schema has none: what is declared so neither Spark nor delta-rs looks at."""
    _check_names(rows["headers"])
    times, exact = split_times(rows["timestamp"])
    read = dict(zip(rows.column_names, rows.columns, strict=True))
    read |= {"timestamp": times, "timestamp_ms": exact}
    columns = []
    for field in schema:
        column = read.get(field.name)
        if column is None or field.name in same:
            columns.append(repeat(same.get(field.name), field.type, rows.num_rows))
        else:
            columns.append(column if column.type == field.type else column.cast(field.type))
        if not field.nullable and columns[-1].null_count:
            raise ValueError(f"its {field.name} is null")
    return pa.table(columns, schema.names)


def _check_names(headers: pa.ChunkedArray) -> None:
    """Raises ValueError for a header without its name (`kafka/log.py: Log.read`)."""
    if headers.null_count == len(headers):
        return
    names = pc.struct_field(pc.list_flatten(headers), "key")
    if names.null_count:
        raise ValueError(
            "a name of its headers is no UTF-8, which only the compiled part of mirrorlake reads"
        )


def _plainly(value: object, kind: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value, kind), count)
