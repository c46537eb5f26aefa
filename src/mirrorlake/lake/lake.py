"""The lake: where the tables live, made and opened by name.

A local lake is a directory with one Delta table a folder, known to the session under a schema of its own; in Unity
Catalog it is a schema. The rest of the package says `lake.sql(...)` and table names, and never a path.
"""

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

import pyarrow as pa

from mirrorlake.errors import InputError, LakeError, ReplicationError, first_line
from mirrorlake.lake import catalog_commits
from mirrorlake.lake.definitions import TABLES, VIEWS, definition, sql_text
from mirrorlake.lake.group_commit import GroupCommit
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.reader import Frame, Frames, QueryRows, Reader
from mirrorlake.lake.spark_rows import frames_in, rows_from_arrow

if TYPE_CHECKING:  # answers without Spark (lake/duck.py) come by this module too
    from pyspark.sql import DataFrame, SparkSession

_CHANGE_ATTEMPTS = 5
Answer = TypeVar("Answer")
#: `USE <schema>` is state of the session, which all lakes of a process share: no other lake's comes between it and the
#: statement that it is for.
_session_use = threading.RLock()


class Lake:
    """The tables of one lake, and the Spark session that knows them. Make it with `opening.open_lake`.

    One that was opened to be read (`opening.reading_lake`) has no `checkpoints`; whatever lands or produces needs what
    only a lake opened for writing has: `checkpoints`, `leases` and `lake_id`. One in a folder is asked and appended to
    without a session: it gets one when it is first needed.
    """

    engine: ClassVar[str] = "Spark"

    def __init__(
        self,
        opening: "Callable[[], SparkSession]",
        schema: str,
        directory: Path | None,
        checkpoints: Path | None,
    ) -> None:
        self._opening = opening
        self._use = threading.RLock()  # around the session, and the commits that threads share
        self._session: SparkSession | None = None
        self.schema = schema
        self.directory = directory
        self.stored_id: str | None = None  # what the table says (lake/identity.py)
        self._checkpoints = checkpoints
        self._tables_known: set[str] = set()
        self._views_made: set[str] = set()
        self._groups: dict[str, GroupCommit] = {}
        #: Commits without Spark, where the lake is a path.
        self.path_tables = None if directory is None else PathTables(directory)

    @property
    def spark(self) -> "SparkSession":
        """The session, opened if it is the first time that it is needed. Raises MissingJava."""
        with self._use:
            if self._session is None:
                self._session = self._opening()
            return self._session

    def check_session(self) -> None:
        """Raise ReplicationError where the session was opened and its JVM is gone, killed or out of memory: this
        process gets no other one. A Spark Connect server may come back, and is not asked."""
        from mirrorlake.spark.home import over_connect

        if self._session is None or over_connect():
            return
        try:
            self._session.conf.get("spark.app.id", None)  # the JVM answers it
        except Exception as error:
            raise ReplicationError(
                "the JVM of this process's Spark session is gone (killed, or out of memory), so nothing more can be "
                "landed here; start `mirrorlake run` again"
            ) from error

    @property
    def place(self) -> str:
        """Where the lake is, as sentences say it."""
        return str(self.directory or self.schema)

    @property
    def checkpoints(self) -> Path:
        """Where streaming checkpoints live. Raises LakeError when the lake was opened to be read."""
        return self._opened_for_writing()

    def check_for_writing(self) -> None:
        """Raise LakeError when the lake was opened to be read: what lands or produces asks before it does anything."""
        self._opened_for_writing()

    def _opened_for_writing(self) -> Path:
        """The checkpoints, which a lake that was opened to be read does not have."""
        if self._checkpoints is None:
            raise LakeError(
                f"the lake at {self.place} was opened read-only, so nothing can be landed or produced here; open it "
                "by the topology file, whose `lake` says where the checkpoints are"
            )
        return self._checkpoints

    @property
    def leases(self) -> Path:
        """Where leases live: in the lake itself where it is a folder, so that all who open it find the same ones.

        Raises LakeError when the lake was opened to be read.
        """
        self.check_for_writing()
        return (self.checkpoints if self.directory is None else self.directory / "_checkpoints") / "leases"

    @property
    def lake_id(self) -> str:
        """What the lake is called on target clusters: in groups and transactional ids of its flows.

        Raises LakeError when the lake was opened to be read, or has no identity (`identity.store_identity`).
        """
        self.check_for_writing()
        if not self.stored_id:
            raise LakeError(f"the lake at {self.place} has no identity yet; `mirrorlake run` gives it one")
        return self.stored_id

    def name(self, table: str) -> str:
        """The qualified name of a table or view, which the session knows from now on."""
        self.make_known(table)
        return f"{self.schema}.{table}"

    def table(self, table: str) -> "DataFrame":
        """A table or view, read as of now."""
        return self.spark.table(self.name(table))

    def sql(self, text: str, args: Mapping[str, object] | None = None) -> "DataFrame":
        """Run a statement in which bare table names mean this lake's; `args` fills `:named` parameters."""
        with _session_use:
            self.make_known(text)
            self.spark.sql(f"USE {self.schema}")
            return self.spark.sql(text, args=dict(args)) if args else self.spark.sql(text)

    def make_known(self, text: str) -> None:
        """Make the session know the tables and views that a text names, and what those are made of.

        A session's catalog forgets them, each costs the reading of a log, and most commands need a few. One that says
        SHOW sees all.
        """
        named = {word.lower() for word in re.findall(r"\w+", text)}
        if "show" in named:
            named.update(TABLES, VIEWS)
        with _session_use:
            for table in TABLES:
                if table in named - self._tables_known:
                    self._find(table)
            for view in VIEWS:
                if view in named - self._views_made:
                    self._views_made.add(view)
                    self.sql(sql_text("views", view))

    def mark_known(self, tables: Iterable[str] = (), views: Iterable[str] = ()) -> None:
        """Say what the session's catalog has without our doing."""
        self._tables_known.update(tables)
        self._views_made.update(views)

    def add_columns(self, table: str) -> None:
        """Add the columns that a table lacks because an earlier version made it."""
        known = set(self.table(table).columns)
        missing = [f"{item.name} {item.spark_type}" for item in definition(table).columns if item.name not in known]
        if missing:
            self.sql(f"ALTER TABLE {table} ADD COLUMNS ({', '.join(missing)})")

    def _find(self, table: str) -> None:
        """Tell the session of a table that is in this lake's directory, if it is there yet. A catalog knows its own."""
        if self.directory is not None and has_table(self.directory, table):
            place = quoted(self.directory / table)
            self.spark.sql(f"CREATE TABLE IF NOT EXISTS {self.schema}.{table} USING DELTA LOCATION '{place}'")
            self._tables_known.add(table)
            self.add_columns(table)

    def query(self, name: str, **args: object) -> "DataFrame":
        """Run `sql/queries/<name>.sql` of the package."""
        return self.sql(sql_text("queries", name), args)

    def query_over(self, name: str, frames: Mapping[str, "DataFrame"], **args: object) -> "DataFrame":
        """Run `sql/queries/<name>.sql`, which names frames as `{frame}`."""
        return self._over(sql_text("queries", name), frames, args)

    def _over(self, text: str, frames: Mapping[str, "DataFrame"], args: Mapping[str, object]) -> "DataFrame":
        with _session_use:
            self.make_known(text)
            self.spark.sql(f"USE {self.schema}")
            return self.spark.sql(text, args=dict(args), **frames)

    def rows(
        self,
        text: str,
        args: Mapping[str, object] | None = None,
        frames: Frames | None = None,
        limit: int | None = None,
    ) -> QueryRows:
        """See `Reader.rows`."""
        from pyspark.errors import AnalysisException, ParseException  # only who reads by Spark needs it

        text, made = frames_in(self.spark, text, frames or {})
        try:
            found = self._over(text, made, args or {}) if made else self.sql(text, args)
            return rows_from_arrow((found if limit is None else found.limit(limit)).toArrow())
        except (AnalysisException, ParseException) as error:
            raise InputError(first_line(error)) from error

    def query_rows(self, name: str, frames: Frames | None = None, **args: object) -> QueryRows:
        """See `Reader.query_rows`."""
        return self.rows(sql_text("queries", name), args, frames)

    def table_rows(self, table: str) -> QueryRows:
        """See `Reader.table_rows`."""
        return rows_from_arrow(self.table(table).toArrow())

    def with_all_columns(self, table: str) -> str:
        """See `Reader.with_all_columns`: a catalog's table lacks columns until a writer of this
        version has opened it."""
        known = set() if self.directory else set(self.table(table).columns)
        missing = [] if self.directory else [item for item in definition(table).columns if item.name not in known]
        added = [f"CAST(NULL AS {item.spark_type}) AS {item.name}" for item in missing]
        return f"SELECT {', '.join(['*', *added])} FROM {table}"

    def arrow(self, text: str, args: Mapping[str, object] | None = None) -> pa.RecordBatchReader:
        """See `Reader.arrow`."""
        from mirrorlake.spark.causes import cause_of
        from mirrorlake.spark.failures import SPARK_FAILURES

        try:
            return self.sql(text, args).toArrow().to_reader()
        except SPARK_FAILURES as error:
            raise InputError(cause_of(error)) from error

    def refresh(self) -> None:
        """See `Reader.refresh`: Spark asks for the newest version by itself."""

    @cached_property
    def reader(self) -> Reader:
        """Who answers what a running process asks of small tables: DuckDB where the lake is a path, else Spark."""
        if self.directory is None:
            return self
        from mirrorlake.lake.duck import DuckLake  # stands on this module

        return DuckLake(self.directory, self._checkpoints)

    def ask(self, query: str, frames: Frames | None = None, **args: object) -> QueryRows:
        """The rows of `sql/queries/<query>.sql`, as of now, by `reader`."""
        self.reader.refresh()
        return self.reader.query_rows(query, frames, **args)

    def ask_table(self, table: str) -> QueryRows:
        """All rows of a small table or view, as of now, by `reader`."""
        self.reader.refresh()
        return self.reader.table_rows(table)

    def change(self, name: str, frames: Mapping[str, Frame] | None = None, **args: object) -> None:
        """Run a statement of the package that changes rows of a small table; once more where another process changed
        them just then."""
        text = sql_text("queries", name)
        if self.path_tables is None:
            self.retrying(lambda: self.rows(text, args, frames))
            return
        from mirrorlake.lake.duck_changes import Change  # DuckDB is imported by who asks it

        change = Change(text, args, frames or {})
        self.path_tables.rewrite(change.table, change.of)

    def retrying(self, work: Callable[[], Answer]) -> Answer:
        """Do what commits; again where the commit of another process, or thread, came in between."""
        for attempt in range(_CHANGE_ATTEMPTS):
            try:
                return work()
            except Exception as error:  # Spark hands Delta's own exceptions over as errors of py4j
                from mirrorlake.spark.causes import is_conflict  # imports Spark, which must not be there for answers

                if not is_conflict(error) or attempt == _CHANGE_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def append(self, table: str, rows: pa.Table, application: str | None = None, version: int = 0) -> None:
        """Append rows; columns that are missing become null.

        Args:
            table: the table.
            rows: what to append.
            application: makes it idempotent (Delta's txnAppId); without, threads that append to a table share commits.
            version: an append of the same application and version does nothing (txnVersion). Versions rise.

        Raises:
            Fenced: the application has come further than `version`: another process took it over.
        """
        if rows.num_rows == 0:
            return
        if application is not None:
            self._commit(table, rows, application, version)
            return
        with self._use:
            if table not in self._groups:
                self._groups[table] = GroupCommit(partial(self._commit, table))
        self._groups[table].append(rows)

    def fence(self, table: str, application: str, version: int) -> None:
        """Commit no rows, as `version` of an application: its appends below that one, those on their way included, fail
        from now on."""
        if self.path_tables is not None:
            self.path_tables.fence(table, application, version)
            return
        self.retrying(lambda: catalog_commits.commit(self, self.table(table).limit(0), table, application, version))

    def take_over(self, table: str, application: str, least: int) -> int:
        """Begin to append to a table as the only owner of an application: whatever owners before have on
        their way fails from now on.

        Returns the number, `least` or more, behind which the versions of this owner begin. It lies so far above all
        that the table knows, whatever the clocks of owners before said, that none of them comes to it.
        """
        if self.path_tables is not None:
            return self.path_tables.take_over(table, application, least)
        return catalog_commits.take_over(self, table, application, least)

    def application_version(self, table: str, application: str) -> int | None:
        """How far an application has come; None where it never appended, as far as the table tells."""
        if self.path_tables is not None:
            return self.path_tables.application_version(table, application)
        return catalog_commits.application_version(self, table, application)

    def _commit(self, table: str, rows: pa.Table, application: str | None = None, version: int = 0) -> None:
        if self.path_tables is not None:
            self.path_tables.append(table, rows, application, version)
        elif application is None:
            self.spark.createDataFrame(rows).write.format("delta").mode("append").saveAsTable(self.name(table))
        else:
            catalog_commits.append(self, self.spark.createDataFrame(rows), table, application, version)

    def version_of(self, table: str) -> int:
        """The newest committed version of a table."""
        if self.path_tables is not None:
            return self.path_tables.version(table)
        return int(self.spark.sql(f"DESCRIBE HISTORY {self.name(table)} LIMIT 1").collect()[0]["version"])


def quoted(path: Path) -> str:
    """A path as it stands between single quotes in SQL."""
    return str(path).replace("\\", "\\\\").replace("'", "\\'")


def has_table(root: Path, table: str) -> bool:
    """Whether a lake's directory holds a table, with a commit: to name a place without one makes an empty table."""
    return any((root / table / "_delta_log").glob("*.json"))
