"""A lake at a path or URL, read by DuckDB over the snapshots of delta-rs: the second adapter of the
port `lake.reader`.

It needs no Java, and imports neither Spark nor pandas. A table is opened when a query names it,
once until `refresh`. DuckDB reads the Parquet files of a snapshot itself: it streams, in many
threads, and skips by their statistics. The files are the whole table only where it has neither
deletion vectors nor column mapping; other tables are refused.
"""

import glob
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import duckdb

from mirrorlake.config.topology_file import nearest
from mirrorlake.errors import InputError, text_of
from mirrorlake.lake.definitions import TABLES, VIEWS, sql_text
from mirrorlake.lake.delta_log import files_of
from mirrorlake.lake.duck_frames import column_as, give, plain, with_frames, without_huge
from mirrorlake.lake.duck_query import PREPARED, WITH_FILES, DuckQuery
from mirrorlake.lake.folder import own_folder
from mirrorlake.lake.java_patterns import read_noted
from mirrorlake.lake.open_tables import OpenTables
from mirrorlake.lake.place import Place
from mirrorlake.lake.properties import check_version
from mirrorlake.lake.reader import NONE, Args, Frame, Frames, QueryRows, Reader
from mirrorlake.lake.translated import duckdb_columns, duckdb_query

if TYPE_CHECKING:
    import pyarrow as pa

    from mirrorlake.lake.store_files import StoreFiles


class DuckLake(OpenTables, Reader):
    """The tables of one lake. One thread uses it at a time; others wait."""

    engine: ClassVar[str] = "DuckDB"

    def __init__(
        self,
        place: Place | Path,
        checkpoints: Path | None = None,
        memory: str | None = None,
        *,
        whole: bool = False,
    ) -> None:
        """With more than `memory`, such as 2GB, DuckDB goes to disk; None for its own limit. For
        `whole` see `OpenTables`."""
        super().__init__(place, whole)
        self.directory: Place | None = self._root
        self._checkpoints = checkpoints or own_folder(self._root)
        self._memory = {} if memory is None else {"memory_limit": memory}
        self._known: set[str] = set()
        self._properties: Mapping[str, str] | None = None  # of the table `records`
        self._stored: StoreFiles | None = None
        if self._root.in_store:
            from mirrorlake.lake import store_files  # obstore and fsspec are an extra

            self._stored = store_files.StoreFiles(self._root)

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        # By default DuckDB spills into the working directory of the process.
        spilled = str(Path(tempfile.gettempdir()) / "mirrorlake-duckdb")
        connection = duckdb.connect(config={"temp_directory": spilled, **self._memory})
        for statement in PREPARED:
            connection.execute(statement)
        if self._stored is not None:
            connection.register_filesystem(self._stored)
        if self._properties is None:
            self._read_properties()
        check_version(self._properties or {}, str(self._root))
        return connection

    def _read_properties(self) -> None:
        table = self._snapshots.get("records") or self._if_there(
            "records", lambda: self._log("records").opened(without_files=True)
        )
        self._properties = {} if table is None else table.metadata().configuration

    @property
    def checkpoints(self) -> Path:
        return self._checkpoints

    def refresh(self) -> None:
        """See `Reader.refresh`. A table is checked for new commits when a query names it, so a
        query on one table checks one; without new commits it stays open."""
        with self._use:
            self.doubt(name.removesuffix(WITH_FILES) for name in self._known - {*VIEWS})

    def _look_again(self, tables: Collection[str]) -> set[str]:
        old = super()._look_again(tables)
        for name in [*self._known] if old else ():
            if name in VIEWS or name.removesuffix(WITH_FILES) in old:
                self._connection.execute(f'DROP VIEW IF EXISTS "{name}"')
                self._known.discard(name)
        return old

    def close(self) -> None:
        """Close the connection, which deletes what it has on disk."""
        self._connection.close()

    def rows(
        self, text: str, args: Args = NONE, frames: Frames = NONE, limit: int | None = None
    ) -> QueryRows:
        with self._answering():
            relation = self._relation(text, args, frames)
            relation = plain(relation if limit is None else relation.limit(limit))
            columns = relation.columns
            return QueryRows(
                (dict(zip(columns, row, strict=True)) for row in relation.fetchall()), columns
            )

    def arrow(self, text: str, args: Args = NONE, frames: Frames = NONE) -> "pa.RecordBatchReader":
        with self._answering():
            return without_huge(self._relation(text, args, frames)).fetch_record_batch()

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Let no other thread ask meanwhile. A query that fails cannot be run, or the store did not
        give a file."""
        with self._use:
            try:
                yield
            except duckdb.Error as error:
                failure = None if self._stored is None else self._stored.failure
                raise (failure or InputError(_in_words(error))) from error

    def _relation(
        self, text: str, args: Mapping[str, object], frames: Frames
    ) -> duckdb.DuckDBPyRelation:
        query = duckdb_query(with_frames(text, frames))
        if self._stored is not None:
            self._stored.failure = None
        self._make_known(query)
        self.give(frames)
        return self._connection.sql(
            query.text, params={name: args[name] for name in query.parameters & args.keys()}
        )

    def give(self, frames: Frames) -> None:
        """Register frames' rows with the connection, by the names that `with_frames` gives."""
        for name, frame in frames.items():
            if isinstance(frame, Frame):
                give(self._connection, name, frame)

    def run(self, query: DuckQuery, text: str) -> duckdb.DuckDBPyRelation:
        """Run a statement in DuckDB's dialect over what a query names."""
        self._make_known(query)
        return self._connection.sql(text)

    def _make_known(self, query: DuckQuery) -> None:
        """Open what a query names, and what its views read."""
        self._open_all(query.tables)
        self._define(query.tables)

    def open_together(self, names: Collection[str]) -> None:
        with self._answering():
            self._open_all(names)
            self._define(names)

    def _open_all(self, names: Iterable[str]) -> None:
        """Open the tables behind some names, as of now where `refresh` asked for that."""
        tables = frozenset[str]().union(*map(_made_of, names))
        self._look_again(tables)
        unread = self._properties is None and "records" not in tables
        self.open_missing(tables, *([self._read_properties] if unread else []))

    def _define(self, names: Iterable[str]) -> None:
        """Make views for the tables and views that a query names, and for those that these read."""
        for name in names:
            if name in self._known:
                continue  # an earlier view of this query reads it
            if (table := name.removesuffix(WITH_FILES)) in TABLES:
                self._open(table, name)
                if name == "objectives":
                    read_noted(self._connection)
            elif name in VIEWS:
                view = duckdb_query(sql_text("views", name))
                self._define(view.tables)
                self._connection.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS {view.text}')
            else:
                continue  # a name of the query's own, or one that DuckDB refuses
            self._known.add(name)

    def folder(self, table: str) -> str:
        """The prefix of a table's file names in DuckDB."""
        return f"{self._root / table}/" if self._stored is None else f"lake://{table}/"

    def _open(self, table: str, view: str) -> None:
        """Make a view of a table as of now; a table that an earlier version did not have is empty,
        and a column it did not have is null."""
        wanted = dict(duckdb_columns(sql_text("tables", table)))
        if view != table:
            wanted |= {"filename": "VARCHAR", "file_row_number": "BIGINT"}
        delta = self.snapshot(table)
        # Paths as in the folder: in delta-rs' URIs a space is %20. DuckDB reads some as patterns.
        files = {} if delta is None else files_of(delta)
        if delta is None or not files:
            empty = ", ".join(
                f'CAST(NULL AS {kind}) AS "{column}"' for column, kind in wanted.items()
            )
            self._connection.execute(f'CREATE TEMP VIEW "{view}" AS SELECT {empty} WHERE false')
            return
        folder, numbered = self.folder(table), view != table
        # Files written before a column was added lack it.
        if self._stored is None:
            relation = self._connection.read_parquet(
                [glob.escape(f"{folder}{path}") for path in files],
                union_by_name=True,
                hive_partitioning=False,
                filename=numbered,
                file_row_number=numbered,
            )
        else:
            relation = self._stored.rows(self._connection, delta, folder, view, numbered)
        kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
        columns = [column_as(column, kinds.get(column), kind) for column, kind in wanted.items()]
        columns += [f'"{column}"' for column in kinds if column not in wanted]
        relation.project(", ".join(columns)).create_view(view)


@cache
def _made_of(name: str) -> frozenset[str]:
    """The tables behind a name in a query: the table itself, those that a view reads, or none."""
    if (table := name.removesuffix(WITH_FILES)) in TABLES:
        return frozenset((table,))
    if name not in VIEWS:
        return frozenset()
    return frozenset[str]().union(*map(_made_of, duckdb_query(sql_text("views", name)).tables))


def _in_words(error: duckdb.Error) -> str:
    """The first line of DuckDB's message. For an unknown table it suggests the nearest name: DuckDB
    itself knows only tables that earlier queries named."""
    first, *rest = text_of(error).splitlines()
    if unknown := re.search(r"Table with name (\w+) does not exist!", first):
        return f"there is no table or view {unknown[1]}{nearest(unknown[1], (*TABLES, *VIEWS))}"
    return " ".join([first, *(line for line in rest if line.startswith("Candidate bindings"))])
