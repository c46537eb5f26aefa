"""What tables are made of is read from the statements that make them."""

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from mirrorlake.lake.definitions import TABLES, definition, rows_of


@pytest.mark.parametrize("table", TABLES)
def test_each_table_says_what_it_is(table: str) -> None:
    found = definition(table)
    assert found.comment.startswith("mirrorlake: ")
    assert found.properties["delta.enableDeletionVectors"] == "false"  # files are read as they are
    assert len({column.name for column in found.columns}) == len(found.columns) == len(found.rows)


def test_types_comments_and_nullability() -> None:
    columns = {column.name: column for column in definition("offset_map").columns}
    assert (columns["flow"].arrow_type, columns["flow"].required) == (pa.string(), True)
    assert (columns["generation"].spark_type, columns["generation"].required) == ("INT", False)
    assert (
        columns["first_batch_id"].comment is not None
        and "made of several" in columns["first_batch_id"].comment
    )
    segment = columns["segments"].arrow_type.value_type
    assert [field.name for field in segment] == [
        "source_first",
        "stride",
        "target_first",
        "record_count",
    ]
    states = definition("states").rows
    assert states.field("configs").type == pa.map_(pa.string(), pa.string())
    assert definition("records").rows.field("headers").type == pa.list_(
        pa.struct([("key", pa.string()), ("value", pa.binary())])
    )


def test_rows_have_all_columns() -> None:
    at = datetime(2026, 11, 23, tzinfo=timezone.utc)
    rows = rows_of("changes", [{"flow": "a->b", "at": at, "kind": "topic"}])
    assert rows.schema == definition("changes").rows
    assert rows.to_pylist()[0] | {"flow": None} == dict.fromkeys(rows.column_names) | {
        "at": at,
        "kind": "topic",
    }
