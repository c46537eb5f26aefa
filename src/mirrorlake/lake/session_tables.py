"""The tables of a lake as a Spark session knows them: queried in Spark's SQL, under bare names."""

import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from mirrorlake.errors import InputError, ReplicationError, first_line
from mirrorlake.lake.definitions import TABLES, VIEWS, definition, sql_text
from mirrorlake.lake.reader import NONE, Args, Frames, QueryRows, Reader
from mirrorlake.lake.spark_rows import frames_in, rows_from_arrow, with_values
from mirrorlake.spark.session_start import SessionStart

if TYPE_CHECKING:  # answers without Spark come by this module too
    from pyspark.sql import DataFrame, SparkSession

#: `USE <schema>` is state of the session, which all lakes of a process share. This lock keeps the
#: `USE` of another lake from coming between it and the statement that it is for.
_session_use = threading.RLock()


class SessionTables(Reader):
    """A `Reader` by Spark, in a session that is opened when it is first needed.

    Attributes:
        schema: the tables' schema in the session.
        starting: the session that this process starts once it is needed; None if it starts none.
    """

    engine: ClassVar[str] = "Spark"

    def __init__(self, opening: "Callable[[], SparkSession]", schema: str) -> None:
        self._opening = opening
        self._use = threading.RLock()  # around the commits that threads share
        self._opening_use = threading.RLock()
        self._session: SparkSession | None = None
        self.starting: SessionStart | None = None
        self.schema = schema
        self._tables_known: set[str] = set()
        self._views_made: set[str] = set()

    @property
    def spark(self) -> "SparkSession":
        """The session, opened when it is first needed. Raises MissingJava."""
        with self._opening_use:
            if self._session is None:
                self._session = self._open_session()
            return self._session

    @property
    def later_session(self) -> SessionStart | None:
        """The session that this process starts when needed, while it is not up yet; else None."""
        return None if self.starting is None or self.starting.over else self.starting

    def _open_session(self) -> "SparkSession":
        return self._opening()

    def check_session(self) -> None:
        """Raise ReplicationError where the JVM of an opened session is gone, killed or out of
        memory: this process gets no other session. Raises what opening the session raised, too. A
        Spark Connect server may come back, and is not asked."""
        from mirrorlake.spark.home import over_connect

        if self.starting is not None and self.starting.over:
            self.spark  # noqa: B018 - raises where it could not be opened
        if self._session is None or over_connect():
            return
        try:
            self._session.conf.get("spark.app.id", None)  # the JVM answers it
        except Exception as error:
            raise ReplicationError(
                "the JVM of this process's Spark session is gone (killed, or out of memory), so "
                "nothing more can be landed here; start `mirrorlake run` again"
            ) from error

    def name(self, table: str) -> str:
        """The qualified name of a table or view, which this makes known to the session."""
        self.make_known(table)
        return f"{self.schema}.{table}"

    def table(self, table: str) -> "DataFrame":
        """A table or view, read as of now."""
        return self.spark.table(self.name(table))

    def sql(self, text: str, args: Args = NONE, frames: Frames = NONE) -> "DataFrame":
        """Run a statement in which bare table names refer to this lake's; `args` fills `:named`
        parameters, and the text names `frames` as `{frame}`."""
        with _session_use:
            text, made = frames_in(self.spark, text, frames)
            self.make_known(text)
            self.spark.sql(f"USE {self.schema}")
            text, left = with_values(text, args)
            return self.spark.sql(text, args=left or None, **made)

    def make_known(self, text: str) -> None:
        """Make the session know the tables and views that a text names, and those that these read.

        A session's catalog does not keep them, each costs reading a log, and commands need few. A
        statement with SHOW sees all.
        """
        named = {word.lower() for word in re.findall(r"\w+", text)}
        if "show" in named:
            named.update(TABLES, VIEWS)
        if named.isdisjoint(VIEWS) and self._tables_known.issuperset(named.intersection(TABLES)):
            return  # without the lock, under which statements run that may take seconds
        with _session_use:
            for table in TABLES:
                if table in named - self._tables_known:
                    self._find(table)
            for view in VIEWS:
                if view in named - self._views_made:
                    self._views_made.add(view)  # before: its own text names it
                    try:
                        self._make_view(view)
                    except BaseException:
                        self._views_made.discard(view)  # else one of another version would stay
                        raise

    def mark_known(self, tables: Iterable[str], views: Iterable[str]) -> None:
        """Mark tables and views that the session's catalog already has."""
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
        """Make the session know an existing table that it does not know by itself."""

    def _make_view(self, view: str) -> None:
        self.sql(sql_text("views", view))

    def query(self, name: str, **args: object) -> "DataFrame":
        """Run `sql/queries/<name>.sql` of the package."""
        return self.sql(sql_text("queries", name), args)

    def rows(
        self, text: str, args: Args = NONE, frames: Frames = NONE, limit: int | None = None
    ) -> QueryRows:
        # only reading by Spark needs it
        from pyspark.errors import AnalysisException, ParseException

        from mirrorlake.spark.causes import metastore_error

        try:
            frame = self.sql(text, args, frames)
            return rows_from_arrow((frame if limit is None else frame.limit(limit)).toArrow())
        except (AnalysisException, ParseException) as error:
            raise metastore_error(error) or InputError(first_line(error)) from error

    def table_rows(self, table: str) -> QueryRows:
        return rows_from_arrow(self.table(table).toArrow())

    def arrow(self, text: str, args: Args = NONE, frames: Frames = NONE) -> pa.RecordBatchReader:
        from mirrorlake.spark.causes import cause_of, metastore_error
        from mirrorlake.spark.failures import SPARK_FAILURES

        try:
            return self.sql(text, args, frames).toArrow().to_reader()
        except SPARK_FAILURES as error:
            raise metastore_error(error) or InputError(cause_of(error)) from error

    def refresh(self) -> None:
        """See `Reader.refresh`: Spark asks for the newest version by itself."""
