"""Rows and tables in the layout that this version writes."""

from collections.abc import Mapping

import pyarrow as pa
from deltalake import DeltaTable, Schema

from mirrorlake.lake.definitions import definition

#: How long commits, and the names of files that were replaced, stay in a table's log. Each commit
#: lists the whole log: one costs 6 ms with few files in it, 55 ms with the 7,200 of an hour of two
#: rounds a second, and 3 s with a day's.
LOG_RETENTION: Mapping[str, str] = {
    "delta.logRetentionDuration": "interval 30 minutes",
    "delta.deletedFileRetentionDuration": "interval 6 hours",
}


def in_layout(rows: pa.Table, layout: pa.Schema) -> pa.Table:
    """Rows with the columns of a table as it is, in its types; what they lack is null. A newer
    version may have added columns, or fields of one: an older one that goes on in its lake drops
    none."""
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in layout
    ]
    return pa.table(columns, names=layout.names)


def add_missing_columns(delta: DeltaTable, table: str) -> bool:
    """Give a table that an earlier version made the columns that it lacks, and let its log be
    short. Returns whether it had to be changed."""
    there = {field.name for field in delta.schema().fields}
    missing = [column for column in definition(table).columns if column.name not in there]
    if missing:
        added = Schema.from_arrow(
            pa.schema([(column.name, column.arrow_type) for column in missing])
        )
        delta.alter.add_columns(added.fields)
    is_long = not LOG_RETENTION.items() <= delta.metadata().configuration.items()
    if is_long:
        delta.alter.set_table_properties(dict(LOG_RETENTION))
    return bool(missing) or is_long
