"""The lake: where the tables live. `Lake` is what a lake in a folder and one in a catalog share.

The rest of the package names tables, never paths, and does not ask which kind of lake it has:
`opening.open_lake` opens a `path_lake.PathLake` or a `catalog_lake.CatalogLake`.
"""

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from mirrorlake.errors import LakeError, first_line
from mirrorlake.lake.meter import LakeMeter
from mirrorlake.lake.place import Place
from mirrorlake.lake.reader import NONE, Frame, Frames, QueryRows, Reader
from mirrorlake.lake.session_tables import SessionTables
from mirrorlake.lake.upkeep import TableUpkeep

if TYPE_CHECKING:  # answers without Spark come by this module too
    from pyspark.sql import SparkSession

_CHANGE_ATTEMPTS = 5
Answer = TypeVar("Answer")


class Lake(SessionTables):
    """The tables of one lake: read as a `Reader`, appended to and changed, and the Spark session
    that knows them.

    A lake that was opened to be read (`opening.reading_lake`) has no `checkpoints`, `leases` or
    `lake_id`; landing and producing need them.

    Attributes:
        directory: the lake's place; None in a catalog.
        stored_id: its identity, a property of its table `records` (`lake.identity`).
    """

    #: Whether this process opens the files of tables itself, without Spark.
    opens_files: bool

    def __init__(
        self,
        opening: "Callable[[], SparkSession]",
        schema: str,
        directory: Place | None,
        checkpoints: Path | None,
    ) -> None:
        super().__init__(opening, schema)
        self.directory = directory
        self.stored_id: str | None = None
        self._checkpoints = checkpoints
        self._groups: dict[str, GroupCommit] = {}
        #: When this process last recorded a change (`lake.rising_times`).
        self.changed_at: datetime | None = None
        #: Measures what this process commits.
        self.meter = LakeMeter()

    @property
    @abstractmethod
    def place(self) -> str:
        """The lake's location, as messages name it."""

    @property
    def in_store(self) -> bool:
        """Whether the lake is in an object store, where each request costs time and money."""
        return self.directory is not None and self.directory.in_store

    @property
    def checkpoints(self) -> Path:
        """The directory of streaming checkpoints. Raises LakeError if opened to be read."""
        self.check_for_writing()
        assert self._checkpoints is not None
        return self._checkpoints

    def check_for_writing(self) -> None:
        """Raise LakeError if opened to be read; landing and producing call this first."""
        if self._checkpoints is None:
            raise LakeError(
                f"the lake at {self.place} was opened read-only, so nothing can be landed or "
                "produced here; open it by the topology file, whose `lake` says where the "
                "checkpoints are"
            )

    @property
    @abstractmethod
    def leases(self) -> Place:
        """The place of leases on this lake. Raises LakeError if it was opened to be read."""

    @property
    def lake_id(self) -> str:
        """The lake's name on target clusters, in the groups and transactional ids of its flows.

        Raises LakeError when the lake was opened to be read, or has no identity
        (`identity.store_identity`).
        """
        self.check_for_writing()
        if not self.stored_id:
            raise LakeError(
                f"the lake at {self.place} has no identity yet; `mirrorlake run` gives it one"
            )
        return self.stored_id

    @property
    @abstractmethod
    def reader(self) -> Reader:
        """The reader for a running process's queries on small tables."""

    @property
    def now(self) -> Reader:
        """`reader`, refreshed: it answers as of now."""
        self.reader.refresh()
        return self.reader

    def ask(self, query: str, frames: Frames = NONE, **args: object) -> QueryRows:
        """The rows of `sql/queries/<query>.sql`, as of now, from `reader`."""
        return self.now.query_rows(query, frames, **args)

    def ask_table(self, table: str) -> QueryRows:
        """All rows of a small table or view, as of now, from `reader`."""
        return self.now.table_rows(table)

    @abstractmethod
    def create(self, table: str, properties: Mapping[str, str]) -> None:
        """Create a table by its definition, with additional properties; an existing table stays as
        it is. Raises LakeError when it cannot be created."""

    @abstractmethod
    def properties(self, table: str) -> dict[str, str]:
        """The properties of a table, as of now."""

    def log_properties(self, table: str) -> Mapping[str, str]:
        """Properties, beyond the definition's, by which this kind of lake keeps a table's log."""
        return {}

    @abstractmethod
    def features(self, table: str) -> set[str]:
        """The features of Delta's protocol that a table uses, or may use, as of now."""

    @abstractmethod
    def version_of(self, table: str) -> int:
        """The newest committed version of a table."""

    def known_version(self, _table: str) -> int | None:
        """The newest version of a table that this process has committed or read, without a request;
        None where none is known, or where a request costs nothing."""
        return None

    def check_there(self) -> None:
        """Raise LakeError where a table that this process writes to was deleted, or deleted and
        made again, as far as this kind of lake can tell: later commits would be lost."""

    @abstractmethod
    def change(self, name: str, frames: Mapping[str, Frame] = NONE, **args: object) -> None:
        """Run a statement of the package that changes rows of a small table; retry when another
        process changed them at the same time."""

    def keep_views(self, most: int | None = None) -> None:
        """Make, or alter, the views that others read, at most so many that this process has not
        looked at yet. Raises LakeError where one can be neither made nor altered."""

    @abstractmethod
    def upkeep(self, table: str) -> TableUpkeep:
        """The operations of `maintain` and `forget` on a table."""

    def _unusable(self, table: str, error: Exception) -> LakeError:
        """The error that `create` raises."""
        return LakeError(
            f"the lake at {self.place} is not usable: table {table} cannot be made there "
            f"({first_line(error)})"
        )

    def retrying(self, work: Callable[[], Answer]) -> Answer:
        """Run `work`, which commits; retry when another process or thread commits in between."""
        for attempt in range(_CHANGE_ATTEMPTS):
            try:
                return work()
            except Exception as error:  # Spark hands Delta's own exceptions over as errors of py4j
                # imports Spark, which answers must do without
                from mirrorlake.spark.causes import is_conflict

                if not is_conflict(error) or attempt == _CHANGE_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def append(
        self, table: str, rows: pa.Table, application: str | None = None, version: int = 0
    ) -> None:
        """Append rows; missing columns become null. An `application` makes the append idempotent
        (Delta's txnAppId): a `version` (txnVersion) that is already committed is not appended
        again, and versions rise. Without an application, threads that append to the same table
        share commits.

        Raises Fenced where the application has a higher version: another process took it over.
        """
        if rows.num_rows == 0:
            return
        if application is not None:
            with self.measured(table):
                self._commit(table, rows, application, version)
            return
        with self._use:
            if table not in self._groups:
                self._groups[table] = GroupCommit(partial(self._commit_measured, table))
        self._groups[table].append(rows)

    @contextmanager
    def measured(self, table: str) -> Iterator[None]:
        """Measure the block, which commits to a table."""
        began = time.monotonic()
        yield
        self.meter.committed(table, time.monotonic() - began)

    def _commit_measured(self, table: str, rows: pa.Table) -> None:
        with self.measured(table):
            self._commit(table, rows)

    @abstractmethod
    def fence(self, table: str, application: str, version: int) -> None:
        """Commit no rows, as `version` of an application: its appends below that version, including
        those in flight, fail from now on."""

    @abstractmethod
    def take_over(self, table: str, application: str, least: int) -> int:
        """Begin to append to a table as the only owner of an application: whatever earlier owners
        have in flight fails from now on.

        Returns the number, at least `least`, behind which this owner's versions begin. It lies so
        far above all versions in the table that no earlier owner reaches it, whatever its clock.
        """

    @abstractmethod
    def application_version(self, table: str, application: str) -> int | None:
        """The version that an application has reached; None where the table shows none."""

    @abstractmethod
    def _commit(
        self, table: str, rows: pa.Table, application: str | None = None, version: int = 0
    ) -> None:
        """Append rows in one commit. Raises Fenced."""


class GroupCommit:
    """Shares commits between threads that append to one table, since a commit takes longer than
    most of the work that it records. `write` commits rows. A caller that finds no commit running
    writes for all: its own rows, and those that arrive meanwhile. Each call returns when its own
    rows are committed, or raises when they are not."""

    def __init__(self, write: Callable[[pa.Table], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._waiting: list[tuple[pa.Table, Future[None]]] = []
        self._busy = False

    def append(self, rows: pa.Table) -> None:
        """Append rows. Raises what their commit raised."""
        done: Future[None] = Future()
        with self._lock:
            self._waiting.append((rows, done))
            lead = not self._busy
            self._busy = True
        if lead:
            self._write_all()
        done.result()

    def _write_all(self) -> None:
        while True:
            with self._lock:
                group, self._waiting = self._waiting, []
                if not group:
                    self._busy = False
                    return
            try:
                self._write(
                    pa.concat_tables([rows for rows, _ in group], promote_options="default")
                )
            except BaseException as error:  # noqa: BLE001 - raised in each thread that waits
                for _, done in group:
                    done.set_exception(error)
            else:
                for _, done in group:
                    done.set_result(None)
