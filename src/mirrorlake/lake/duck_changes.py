"""Statements of the package that change rows of a small table, run by DuckDB: the table as it is,
in memory, and back.

One text for both engines; where the lake is a catalog Spark runs it.
"""

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from mirrorlake.lake.dialect import PREPARED, change_to_duckdb, type_of
from mirrorlake.lake.reader import Frame


def give(connection: duckdb.DuckDBPyConnection, name: str, frame: Frame) -> None:
    """Make a table `frame <name>` of rows, all by one statement: one a row takes half a
    millisecond."""
    kinds = ", ".join(f'"{column}" {type_of(kind)}' for column, kind in frame.columns)
    connection.execute(f'CREATE OR REPLACE TEMP TABLE "frame {name}" ({kinds})')
    columns = [list(column) for column in zip(*frame.rows, strict=True)]
    if columns:
        values = ", ".join(f"unnest(${number})" for number in range(1, len(columns) + 1))
        connection.execute(f'INSERT INTO "frame {name}" SELECT {values}', columns)


class Change:
    """A MERGE or UPDATE. `table` is what it changes."""

    def __init__(self, text: str, args: Mapping[str, object], frames: Mapping[str, Frame]) -> None:
        for name in frames:
            text = text.replace(f"{{{name}}}", f"`frame {name}`")
        self._said = change_to_duckdb(text)
        self._args = args
        self._frames = frames

    @property
    def table(self) -> str:
        """The table that it changes."""
        return self._said.table

    def applied_to(self, rows: pa.Table) -> pa.Table | None:
        """The rows of the table behind it; None where it changes none."""
        with duckdb.connect() as connection:
            for statement in PREPARED:
                connection.execute(statement)
            connection.register("as_it_was", rows)
            connection.execute(f'CREATE TABLE "{self.table}" AS SELECT * FROM as_it_was')
            for name, frame in self._frames.items():
                give(connection, name, frame)
            given = {name: self._args[name] for name in self._said.parameters & self._args.keys()}
            (count,) = connection.execute(self._said.text, given).fetchone() or (0,)
            if not count:
                return None
            return connection.sql(f'SELECT * FROM "{self.table}"').to_arrow_table()
