"""What `Reader.rows` is given and gives, to and from Spark."""

from typing import TYPE_CHECKING

import pyarrow as pa

from mirrorlake.lake.reader import Frame, Frames, QueryRows

if TYPE_CHECKING:  # answers without Spark come by this module too
    from pyspark.sql import DataFrame, SparkSession


def frames_in(
    spark: "SparkSession", text: str, frames: Frames
) -> tuple[str, dict[str, "DataFrame"]]:
    """A text with the frames that are texts in it, as Spark takes it with DataFrames for the
    others: with any of these, every other brace stands twice."""
    made: dict[str, DataFrame] = {}
    for name, frame in frames.items():
        if isinstance(frame, Frame):
            schema = ", ".join(f"`{column}` {kind}" for column, kind in frame.columns)
            made[name] = spark.createDataFrame(list(frame.rows), schema)
        else:
            text = text.replace(f"{{{name}}}", f"({frame})")
    if made:
        text = text.replace("{", "{{").replace("}", "}}")
        for name in made:
            text = text.replace(f"{{{{{name}}}}}", f"{{{name}}}")
    return text, made


def rows_from_arrow(table: pa.Table) -> QueryRows:
    """Rows of an Arrow table as `Reader.rows` has them."""
    columns = [
        column.to_pylist(maps_as_pydicts="strict") for column in map(_unzoned, table.columns)
    ]
    rows = zip(*columns, strict=True)
    return QueryRows(
        (dict(zip(table.column_names, row, strict=True)) for row in rows), table.column_names
    )


def _unzoned(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = _without_zone(column.type)
    return column if kind == column.type else column.cast(kind)


def _without_zone(kind: pa.DataType) -> pa.DataType:
    """A type in which times, at any depth, have no zone; those of Arrow are in UTC."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    if pa.types.is_list(kind):
        return pa.list_(_without_zone(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _without_zone(field.type)) for field in kind])
    return kind
