"""The lake: where the tables live. What one in a folder and one in a catalog have in common.

The rest of the package names tables and never a path, and does not ask which of the two it has:
`path_lake.PathLake` or `catalog_lake.CatalogLake`, opened by `opening.open_lake`.
"""

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

import pyarrow as pa

from mirrorlake.errors import InputError, LakeError, ReplicationError, first_line
from mirrorlake.lake.definitions import TABLES, VIEWS, definition, sql_text
from mirrorlake.lake.group_commit import GroupCommit
from mirrorlake.lake.place import Place
from mirrorlake.lake.reader import Frame, Frames, QueryRows, Reader
from mirrorlake.lake.spark_rows import frames_in, rows_from_arrow, with_values
from mirrorlake.lake.upkeep import TableUpkeep

if TYPE_CHECKING:  # answers without Spark come by this module too
    from pyspark.sql import DataFrame, SparkSession

_CHANGE_ATTEMPTS = 5
Answer = TypeVar("Answer")
#: `USE <schema>` is state of the session, which all lakes of a process share: no other lake's comes
#: between it and the statement that it is for.
_session_use = threading.RLock()


class Lake(ABC):
    """The tables of one lake: read as a `Reader`, appended to and changed, and the Spark session
    that knows them.

    One that was opened to be read (`opening.reading_lake`) has no `checkpoints`; whatever lands or
    produces needs what only a lake opened for writing has: `checkpoints`, `leases` and `lake_id`.

    Attributes:
        schema: under which the session knows the tables.
        directory: the lake's place; None in a catalog.
        stored_id: its identity, as its table `records` has it (`lake.identity`).
    """

    engine: ClassVar[str] = "Spark"
    #: Whether this process opens the files of tables itself, without Spark.
    opens_files: ClassVar[bool]
    #: Properties of every table, by which its log stays as short as this kind of lake needs it.
    log_properties: ClassVar[Mapping[str, str]]

    def __init__(
        self,
        opening: "Callable[[], SparkSession]",
        schema: str,
        directory: Place | None,
        checkpoints: Path | None,
    ) -> None:
        self._opening = opening
        self._use = threading.RLock()  # around the session, and the commits that threads share
        self._session: SparkSession | None = None
        self.schema = schema
        self.directory = directory
        self.stored_id: str | None = None
        self._checkpoints = checkpoints
        self._tables_known: set[str] = set()
        self._views_made: set[str] = set()
        self._groups: dict[str, GroupCommit] = {}

    @property
    def spark(self) -> "SparkSession":
        """The session, opened if it is the first time that it is needed. Raises MissingJava."""
        with self._use:
            if self._session is None:
                self._session = self._open_session()
            return self._session

    def _open_session(self) -> "SparkSession":
        return self._opening()

    def check_session(self) -> None:
        """Raise ReplicationError where the session was opened and its JVM is gone, killed or out of
        memory: this process gets no other one. A Spark Connect server may come back, and is not
        asked."""
        from mirrorlake.spark.home import over_connect

        if self._session is None or over_connect():
            return
        try:
            self._session.conf.get("spark.app.id", None)  # the JVM answers it
        except Exception as error:
            raise ReplicationError(
                "the JVM of this process's Spark session is gone (killed, or out of memory), so "
                "nothing more can be landed here; start `mirrorlake run` again"
            ) from error

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the lake is, as sentences name it."""

    @property
    def checkpoints(self) -> Path:
        """Where streaming checkpoints live. Raises LakeError when the lake was opened to be
        read."""
        self.check_for_writing()
        assert self._checkpoints is not None
        return self._checkpoints

    def check_for_writing(self) -> None:
        """Raise LakeError when the lake was opened to be read: what lands or produces asks before
        it does anything."""
        if self._checkpoints is None:
            raise LakeError(
                f"the lake at {self.place} was opened read-only, so nothing can be landed or "
                "produced here; open it by the topology file, whose `lake` says where the "
                "checkpoints are"
            )

    @property
    @abstractmethod
    def leases(self) -> Place:
        """Where processes that open the lake tell one another what they do. Raises LakeError when
        it was opened to be read."""

    @property
    def lake_id(self) -> str:
        """What the lake is called on target clusters: in groups and transactional ids of its flows.

        Raises LakeError when the lake was opened to be read, or has no identity
        (`identity.store_identity`).
        """
        self.check_for_writing()
        if not self.stored_id:
            raise LakeError(
                f"the lake at {self.place} has no identity yet; `mirrorlake run` gives it one"
            )
        return self.stored_id

    def name(self, table: str) -> str:
        """The qualified name of a table or view, which the session knows from now on."""
        self.make_known(table)
        return f"{self.schema}.{table}"

    def table(self, table: str) -> "DataFrame":
        """A table or view, read as of now."""
        return self.spark.table(self.name(table))

    def sql(
        self, text: str, args: Mapping[str, object] | None = None, frames: Frames | None = None
    ) -> "DataFrame":
        """Run a statement in which bare table names mean this lake's; `args` fills `:named`
        parameters, `frames` are named as `{frame}`."""
        with _session_use:
            text, made = frames_in(self.spark, text, frames or {})
            self.make_known(text)
            self.spark.sql(f"USE {self.schema}")
            text, left = with_values(text, args or {})
            return self.spark.sql(text, args=left or None, **made)

    def make_known(self, text: str) -> None:
        """Make the session know the tables and views that a text names, and what those are made of.

        A session's catalog forgets them, each costs the reading of a log, and most commands need a
        few. One that says SHOW sees all.
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
        missing = [
            f"{column.name} {column.spark_type}"
            for column in definition(table).columns
            if column.name not in known
        ]
        if missing:
            self.sql(f"ALTER TABLE {table} ADD COLUMNS ({', '.join(missing)})")

    @abstractmethod
    def _find(self, table: str) -> None:
        """Make the session know a table, if it is there yet and the session does not know it by
        itself."""

    def query(self, name: str, **args: object) -> "DataFrame":
        """Run `sql/queries/<name>.sql` of the package."""
        return self.sql(sql_text("queries", name), args)

    def rows(
        self,
        text: str,
        args: Mapping[str, object] | None = None,
        frames: Frames | None = None,
        limit: int | None = None,
    ) -> QueryRows:
        """See `Reader.rows`."""
        # only who reads by Spark needs it
        from pyspark.errors import AnalysisException, ParseException

        try:
            frame = self.sql(text, args, frames)
            return rows_from_arrow((frame if limit is None else frame.limit(limit)).toArrow())
        except (AnalysisException, ParseException) as error:
            raise InputError(first_line(error)) from error

    def query_rows(self, name: str, frames: Frames | None = None, **args: object) -> QueryRows:
        """See `Reader.query_rows`."""
        return self.rows(sql_text("queries", name), args, frames)

    def table_rows(self, table: str) -> QueryRows:
        """See `Reader.table_rows`."""
        return rows_from_arrow(self.table(table).toArrow())

    @abstractmethod
    def with_all_columns(self, table: str) -> str:
        """See `Reader.with_all_columns`."""

    def arrow(
        self, text: str, args: Mapping[str, object] | None = None, frames: Frames | None = None
    ) -> pa.RecordBatchReader:
        """See `Reader.arrow`."""
        from mirrorlake.spark.causes import cause_of
        from mirrorlake.spark.failures import SPARK_FAILURES

        try:
            return self.sql(text, args, frames).toArrow().to_reader()
        except SPARK_FAILURES as error:
            raise InputError(cause_of(error)) from error

    def refresh(self) -> None:  # noqa: B027 - Spark asks for the newest version by itself
        """See `Reader.refresh`."""

    @property
    @abstractmethod
    def reader(self) -> Reader:
        """What answers the questions that a running process asks of small tables."""

    @property
    def now(self) -> Reader:
        """`reader`, which from here on answers as of now."""
        self.reader.refresh()
        return self.reader

    def ask(self, query: str, frames: Frames | None = None, **args: object) -> QueryRows:
        """The rows of `sql/queries/<query>.sql`, as of now, by `reader`."""
        return self.now.query_rows(query, frames, **args)

    def ask_table(self, table: str) -> QueryRows:
        """All rows of a small table or view, as of now, by `reader`."""
        return self.now.table_rows(table)

    @abstractmethod
    def create(self, table: str, properties: Mapping[str, str]) -> None:
        """Make a table as its definition says, with more properties; one that is there stays as it
        is. Raises LakeError where that cannot be."""

    @abstractmethod
    def properties(self, table: str) -> dict[str, str]:
        """The properties of a table, as of now."""

    @abstractmethod
    def features(self, table: str) -> set[str]:
        """The features of Delta's protocol that a table uses, or may use, as of now."""

    @abstractmethod
    def version_of(self, table: str) -> int:
        """The newest committed version of a table."""

    @abstractmethod
    def change(self, name: str, frames: Mapping[str, Frame] | None = None, **args: object) -> None:
        """Run a statement of the package that changes rows of a small table; once more where
        another process changed them just then."""

    @abstractmethod
    def upkeep(self, table: str) -> TableUpkeep:
        """What `maintain` and `forget` do to a table."""

    def _unusable(self, table: str, error: Exception) -> LakeError:
        """The error of `create`."""
        return LakeError(
            f"the lake at {self.place} is not usable: table {table} cannot be made there "
            f"({first_line(error)})"
        )

    def retrying(self, work: Callable[[], Answer]) -> Answer:
        """Do what commits; again where the commit of another process, or thread, came in
        between."""
        for attempt in range(_CHANGE_ATTEMPTS):
            try:
                return work()
            except Exception as error:  # Spark hands Delta's own exceptions over as errors of py4j
                # imports Spark, which must not be there for answers
                from mirrorlake.spark.causes import is_conflict

                if not is_conflict(error) or attempt == _CHANGE_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def append(
        self, table: str, rows: pa.Table, application: str | None = None, version: int = 0
    ) -> None:
        """Append rows; columns that are missing become null. An `application` makes it idempotent
        (Delta's txnAppId): an append of its `version` that is there does nothing (txnVersion), and
        versions rise. Without one, threads that append to a table share commits.

        Raises Fenced where the application has come further: another process took it over.
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

    @abstractmethod
    def fence(self, table: str, application: str, version: int) -> None:
        """Commit no rows, as `version` of an application: its appends below that one, those on
        their way included, fail from now on."""

    @abstractmethod
    def take_over(self, table: str, application: str, least: int) -> int:
        """Begin to append to a table as the only owner of an application: whatever owners before
        have on their way fails from now on.

        Returns the number, `least` or more, behind which the versions of this owner begin. It lies
        so far above all that the table knows, whatever the clocks of owners before said, that none
        of them comes to it.
        """

    @abstractmethod
    def application_version(self, table: str, application: str) -> int | None:
        """How far an application has come; None where it never appended, as far as the table
        shows."""

    @abstractmethod
    def _commit(
        self, table: str, rows: pa.Table, application: str | None = None, version: int = 0
    ) -> None:
        """Append rows in one commit. Raises Fenced."""
