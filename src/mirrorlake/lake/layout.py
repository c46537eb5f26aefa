"""Rows and tables in the layout that this version writes."""

from collections.abc import Mapping

import pyarrow as pa
from deltalake import DeltaTable, Schema

from mirrorlake.lake.definitions import definition

#: What downstream streams follow (docs/downstream.md): `lake/old_commits.py` shortens their logs.
FOLLOWED = ("records", "offset_map")
#: How long tombstones of replaced files stay in a log's checkpoints, each of which has them all.
_TOMBSTONES = {"delta.deletedFileRetentionDuration": "interval 6 hours"}
_SHORT = {"delta.logRetentionDuration": "interval 30 minutes"}
_LONG = {"delta.logRetentionDuration": "interval 7 days", "delta.enableExpiredLogCleanup": "false"}


def log_properties(table: str) -> Mapping[str, str]:
    """The properties that keep the log of a table at a path or URL as long as it has to be."""
    return {**(_LONG if table in FOLLOWED else _SHORT), **_TOMBSTONES}


def in_layout(rows: pa.Table, layout: pa.Schema) -> pa.Table:
    """Rows in a table's current columns and types; missing columns become null. A newer version may
    have added columns, or fields of one: an older version that goes on in its lake drops none."""
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in layout
    ]
    return pa.table(columns, names=layout.names)


def add_missing_columns(delta: DeltaTable, table: str) -> bool:
    """Add missing columns to an older table, and log properties. Returns whether it was changed."""
    there = {field.name for field in delta.schema().fields}
    missing = [column for column in definition(table).columns if column.name not in there]
    if missing:
        added = Schema.from_arrow(
            pa.schema([(column.name, column.arrow_type) for column in missing])
        )
        delta.alter.add_columns(added.fields)
    wanted = log_properties(table)
    differs = not wanted.items() <= delta.metadata().configuration.items()
    if differs:
        delta.alter.set_table_properties(dict(wanted))
    return bool(missing) or differs
