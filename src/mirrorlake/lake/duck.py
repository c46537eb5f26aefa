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
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from mirrorlake.config.topology_file import nearest
from mirrorlake.errors import InputError, LakeError, text_of
from mirrorlake.lake.definitions import TABLES, VIEWS, sql_text
from mirrorlake.lake.delta_log import BARRED_FEATURES, DeltaLog, features_of, files_of
from mirrorlake.lake.duck_frames import column_as, give, plain, with_frames, without_huge
from mirrorlake.lake.duck_query import PREPARED, WITH_FILES, DuckQuery
from mirrorlake.lake.folder import has_table, own_folder
from mirrorlake.lake.java_patterns import read_noted
from mirrorlake.lake.log_copy import LogCopy
from mirrorlake.lake.place import Place, place_of
from mirrorlake.lake.properties import check_version
from mirrorlake.lake.reader import NONE, Args, Frame, Frames, OpenTable, QueryRows, Reader
from mirrorlake.lake.translated import duckdb_columns, duckdb_query
from mirrorlake.threads import side_by_side

if TYPE_CHECKING:
    import pyarrow as pa

    from mirrorlake.lake.store_files import StoreFiles

#: How many tables are opened at a time in a store, where answers take time: all of a query.
_AT_ONCE = 16
#: The table whose open snapshot is never brought up to date: its holder (`held`) asks for version
#: and files one after the other.
_WHOLE = "records"
Answer = TypeVar("Answer")


class DuckLake(Reader):
    """The tables of one lake. One thread uses it at a time; others wait."""

    engine: ClassVar[str] = "DuckDB"
    #: Whether this reader may mend the tables' logs.
    mends: ClassVar[bool] = True

    def __init__(
        self,
        place: Place | Path,
        checkpoints: Path | None = None,
        memory: str | None = None,
        *,
        whole: bool = False,
    ) -> None:
        """With more than `memory`, such as 2GB, DuckDB goes to disk; None for its own limit. If the
        lake is `whole`, all tables were made: one that is not there is gone, and not empty."""
        self._whole = whole
        self._root = place_of(place)
        self.directory: Place | None = self._root
        self._checkpoints = checkpoints or own_folder(self._root)
        self._memory = {} if memory is None else {"memory_limit": memory}
        self._snapshots: dict[str, DeltaTable] = {}
        self._logs: dict[str, DeltaLog] = {}
        self._marks: dict[str, Hashable | None] = {}
        self._reached_by: dict[str, Mapping[str, str] | None] = {}
        self._absent: set[str] = set()
        self._known: set[str] = set()
        #: Tables to be checked for new commits when a query next names them.
        self._unsure: set[str] = set()
        self._properties: Mapping[str, str] | None = None  # of the table `records`
        self._stored: StoreFiles | None = None
        if self._root.in_store:
            from mirrorlake.lake import store_files  # obstore and fsspec are an extra

            self._stored = store_files.StoreFiles(self._root)
        self._use = threading.RLock()

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
            known = {name.removesuffix(WITH_FILES) for name in self._known} - {*VIEWS}
            self._unsure = known | self._absent | {*self._snapshots}

    def _look_again(self, tables: Collection[str]) -> None:
        """Bring tables up to date, or close them, after new commits; each once after `refresh`."""
        asked = self._unsure.intersection(tables)
        newest = self._of_each(self._is_newest, asked)
        old = {table for table in asked if not newest[table]}
        went_on = {table for table in old - {_WHOLE} if newest[table] is False}
        for name in [*self._known] if old else ():
            if name in VIEWS or name.removesuffix(WITH_FILES) in old:
                self._connection.execute(f'DROP VIEW IF EXISTS "{name}"')
                self._known.discard(name)
        for table in old - went_on:
            self._snapshots.pop(table, None)
        self._of_each(self._bring_up, went_on)
        self._absent -= old
        self._unsure -= asked

    def _of_each(self, ask: Callable[[str], Answer], tables: Collection[str]) -> dict[str, Answer]:
        """The answer for each table; in a store, asked side by side."""
        if not self._root.in_store:
            return {table: ask(table) for table in tables}
        return dict(zip(tables, side_by_side(ask, tables, _AT_ONCE), strict=True))

    def _is_newest(self, table: str) -> bool | None:
        """Whether a table has no newer version, or is still absent; None where it must be opened
        anew: one opened with credentials renewed since can no longer be read."""
        delta = self._snapshots.get(table)
        if delta is None:
            return None if has_table(self._root, table) else True
        if self._root.options != self._reached_by[table]:
            return None
        return self._log(table).is_newest(delta.version(), self._marks[table])

    def _bring_up(self, table: str) -> None:
        """Read the commits that a table got since it was opened, and only those."""
        delta = self._snapshots.pop(table)
        before = delta.version()
        try:
            self._log(table).follow(delta)
        except (DeltaError, OSError):  # its log was cleaned up meanwhile: it is opened anew
            return
        if delta.version() > before and not BARRED_FEATURES & features_of(delta.protocol()):
            self.keep(table, delta)

    def close(self) -> None:
        """Close the connection, which deletes what it has on disk."""
        self._connection.close()

    def rows(
        self, text: str, args: Args = NONE, frames: Frames = NONE, limit: int | None = None
    ) -> QueryRows:
        with self._use:
            try:
                relation = self._relation(text, args, frames)
                relation = relation if limit is None else relation.limit(limit)
                relation = plain(relation)
                columns = relation.columns
                return QueryRows(
                    (dict(zip(columns, row, strict=True)) for row in relation.fetchall()), columns
                )
            except duckdb.Error as error:
                raise self._problem(error) from error

    def arrow(self, text: str, args: Args = NONE, frames: Frames = NONE) -> "pa.RecordBatchReader":
        with self._use:
            try:
                return without_huge(self._relation(text, args, frames)).fetch_record_batch()
            except duckdb.Error as error:
                raise self._problem(error) from error

    def _problem(self, error: duckdb.Error) -> Exception:
        """The error for a failed query: it cannot be run, or the store did not give a file."""
        failure = None if self._stored is None else self._stored.failure
        return failure or InputError(_in_words(error))

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
        with self._use:
            try:
                self._open_all(names)
                self._define(names)
            except duckdb.Error as error:
                raise self._problem(error) from error

    def _open_all(self, names: Iterable[str]) -> None:
        """Open the tables behind some names, as of now where `refresh` asked for that."""
        tables = frozenset[str]().union(*map(_made_of, names))
        self._look_again(tables)
        if self._root.in_store:  # else each is opened when it is read
            calls: list[Callable[[], None]] = [
                partial(self._find, table)
                for table in tables - self._snapshots.keys() - self._absent
            ]
            if self._properties is None and "records" not in tables:
                calls.append(self._read_properties)
            side_by_side(lambda call: call(), calls, _AT_ONCE)

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

    def snapshot(self, table: str) -> DeltaTable | None:
        """A table as this reader has it; None where the lake has no table of that name yet. Raises
        LakeError for a table whose files are not its rows."""
        with self._use:
            self._look_again((table,))
            if table not in self._snapshots.keys() | self._absent:
                self._find(table)
            return self._snapshots.get(table)

    def _find(self, table: str) -> None:
        """Open a table, if the lake has it. Raises LakeError where it had it."""
        delta = self._if_there(table, lambda: self.opened(table))
        if delta is None and self._whole:
            raise LakeError(
                f"table {table} of the lake at {self._root} is not there any more; mount the disk "
                "that it is on, or put it back"
            )
        if delta is None:
            self._absent.add(table)
        else:
            self.keep(table, delta)

    def _if_there(self, table: str, opened: Callable[[], DeltaTable]) -> DeltaTable | None:
        """What `opened` returns; None without such a table. In a store, opening it tells."""
        if not self._root.in_store:
            return opened() if has_table(self._root, table) else None
        try:
            return opened()
        except TableNotFoundError:
            return None

    def opened(self, table: str) -> DeltaTable:
        """An existing table, as of now. Raises LakeError where its files are not its rows."""
        delta = self._log(table).opened()
        if barred := BARRED_FEATURES & features_of(delta.protocol()):
            raise LakeError(
                f"table {table} of the lake at {self._root} has {', '.join(sorted(barred))}, "
                "which only Spark reads: ask with --engine spark"
            )
        return delta

    def _log(self, table: str) -> DeltaLog:
        """The log of a table; kept, since it remembers what a store answered."""
        if table not in self._logs:
            place = self._root / table
            copies = self._root.in_store and self.mends
            self._logs[table] = LogCopy(place) if copies else DeltaLog(place, self.mends)
        return self._logs[table]

    def keeps(self, table: str) -> bool:
        """Whether a table is open."""
        return table in self._snapshots

    def held(self, table: str) -> OpenTable | None:
        with self._use:
            delta = None if table in self._unsure else self._snapshots.get(table)
            return None if delta is None else OpenTable(delta, self._log(table))

    def keep(self, table: str, delta: DeltaTable) -> None:
        """Read a table from this snapshot until `refresh`."""
        # After `refresh`, these tell whether it is still the newest.
        self._marks[table] = self._log(table).mark_of(delta.version())
        self._reached_by[table] = self._root.options
        self._snapshots[table] = delta

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
