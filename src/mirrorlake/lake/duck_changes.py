"""The package's statements that change rows, run by DuckDB: on a small table, as a whole and in
memory; or, for a table of any size, to find the rows that are deleted, by file and number.

Both engines run the same text; Spark does for a lake in a catalog.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from mirrorlake.lake.dialect import SOURCE, change_to_duckdb, rewrite_to_duckdb
from mirrorlake.lake.duck_frames import give, with_frames
from mirrorlake.lake.duck_query import PREPARED, DuckQuery
from mirrorlake.lake.reader import Frame, Frames

if TYPE_CHECKING:
    from mirrorlake.lake.duck import DuckLake


class RowChange:
    """A MERGE or UPDATE."""

    def __init__(self, text: str, args: Mapping[str, object], frames: Mapping[str, Frame]) -> None:
        self._query = change_to_duckdb(with_frames(text, frames))
        self._args = args
        self._frames = frames

    @property
    def table(self) -> str:
        """The table that it changes."""
        return self._query.table

    def applied_to(self, rows: pa.Table) -> pa.Table | None:
        """The rows of the table after the change; None where it changes none."""
        with duckdb.connect() as connection:
            for statement in PREPARED:
                connection.execute(statement)
            connection.register("as_it_was", rows)
            connection.execute(f'CREATE TABLE "{self.table}" AS SELECT * FROM as_it_was')
            for name, frame in self._frames.items():
                give(connection, name, frame)
            given = {name: self._args[name] for name in self._query.parameters & self._args.keys()}
            (count,) = connection.execute(self._query.text, given).fetchone() or (0,)
            if not count:
                return None
            return connection.sql(f'SELECT * FROM "{self.table}"').to_arrow_table()


class DuckRemoval:
    """A statement that deletes rows of `lake`'s tables. `adds`: whether it replaces them."""

    def __init__(self, lake: "DuckLake", text: str, frames: Frames, args: Mapping[str, object]):
        self._lake, self._args = lake, args
        lake.give(frames)
        self._rewrite = rewrite_to_duckdb(with_frames(text, frames))
        self.adds = self._rewrite.added is not None
        if self._rewrite.source is not None:
            self._run(self._rewrite.source, f'CREATE TABLE "{SOURCE}" AS (', ")")

    def counts(self) -> dict[str, int]:
        """How many rows each file loses that loses any, by its path below the table's folder."""
        counted = "SELECT filename, count(*) FROM ("
        rows = self._run(self._rewrite.removed, counted, ") GROUP BY ALL").fetchall()
        return {path[len(self._folder) :]: count for path, count in rows}

    def rows(self, path: str) -> np.ndarray:
        """The numbers of the rows that a file loses, rising."""
        place = exp.convert(f"{self._folder}{path}").sql("duckdb")
        of_file = f") WHERE filename = {place} ORDER BY n"
        numbers = self._run(self._rewrite.removed, "SELECT file_row_number AS n FROM (", of_file)
        return np.asarray(numbers.fetchnumpy()["n"], np.int64)

    def added(self) -> pa.RecordBatchReader:
        """The rows that are added in their place."""
        assert self._rewrite.added is not None
        return self._run(self._rewrite.added).to_arrow_reader()

    @property
    def _folder(self) -> str:
        return self._lake.folder(self._rewrite.table)

    def _run(self, query: DuckQuery, before: str = "", behind: str = "") -> duckdb.DuckDBPyRelation:
        """Values are in the text: with parameters DuckDB would hold the whole answer in memory."""

        def value(placeholder: re.Match[str]) -> str:
            return exp.convert(self._args[placeholder[1]]).sql("duckdb")

        return self._lake.run(query, before + re.sub(r"\$(\w+)", value, query.text) + behind)
