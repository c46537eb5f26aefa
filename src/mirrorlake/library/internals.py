"""The state behind an open lake: topology, clusters, session, tables, each made when first needed.

Not part of the public API: only mirrorlake's own modules may use it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mirrorlake.config.lake import Lake as Location
from mirrorlake.config.topology import Topology
from mirrorlake.errors import InputError, LakeError
from mirrorlake.extras import installed, missing, needs
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.delta_log import rewrite_barrier
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.folder import has_table, lake_place, no_lake
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake, reading_lake
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import Place
from mirrorlake.lake.properties import PROPERTY
from mirrorlake.lake.reader import Reader
from mirrorlake.library.files_at_hand import FilesAtHand
from mirrorlake.library.progress import Progress
from mirrorlake.native.selfcheck import problem as native_problem
from mirrorlake.no_pandas import leave_pandas_out
from mirrorlake.spark.session_start import SessionStart

if TYPE_CHECKING:  # answers without Spark import this module too
    from pyspark.sql import SparkSession

#: The engines for queries. The default is DuckDB for a lake at a path. For a catalog's own tables
#: it is the topology file's SQL warehouse, else DuckDB if their files are accessible, else Spark.
ENGINES = ("spark", "duckdb")


class Internals:
    """Made by `open`. `config` is the topology file, None if the lake was opened by its place."""

    def __init__(
        self,
        location: Location,
        directory: Path,
        topology: Topology | None = None,
        config: Path | None = None,
        *,
        read_only: bool = True,
        spark: "SparkSession | None" = None,
        engine: str | None = None,
    ) -> None:
        if engine not in (None, *ENGINES):
            raise InputError(f"there is no engine {engine}; choose spark or duckdb")
        if engine == "spark" and not installed("spark"):
            raise missing("spark")
        self.engine = engine
        self.location = location
        self.directory = directory
        self.config = config
        self.read_only = read_only
        # Whether no caller reads tables through Spark SQL: then it needs no Delta jar.
        self.by_files = False
        self.makes_lake = False  # whether a missing lake is made: only `run` does that
        self.short = True  # whether the session is short-lived; `run` sets it before one is made
        # gets a line for each one-time step of making a session on a machine
        self.say: Callable[[str], None] | None = None
        self.progress: Progress | None = None  # the progress of `run`, for display
        self._start: SessionStart | None = None
        self._topology = topology
        self._given = spark

    @property
    def has_topology(self) -> bool:
        """Whether the lake was opened by a topology file."""
        return self._topology is not None

    @property
    def place(self) -> str:
        """Where the lake is, for sentences: its folder as given, or catalog.schema."""
        return self.location.path or f"{self.location.catalog}.{self.location.schema_name}"

    @property
    def topology(self) -> Topology:
        """The topology. Raises InputError if the lake was opened without one."""
        if self._topology is None:
            raise InputError(
                "this lake was opened by its place, and only the topology file says which flows "
                "and clusters there "
                'are; open it by that, as in mirrorlake.open("mirrorlake.yml")'
            )
        return self._topology

    @cached_property
    def connections(self) -> Connections:
        """The clusters. Raises InputError without a topology."""
        return Connections(self.topology)

    @cached_property
    def spark(self) -> "SparkSession":
        """The session passed in, else the active one, else a local one. Raises MissingJava."""
        if self._given is not None:
            return self._given
        start, progress = self._start, self.progress
        is_shown = progress is None or (start is not None and start.began is not None)
        with nullcontext() if is_shown or progress is None else progress.phase("starting Spark"):
            return self._opened() if start is None else start.session()

    @property
    def session_there(self) -> bool:
        """Whether `spark` is available without waiting."""
        return self._given is not None or "spark" in self.__dict__

    @property
    def starts_session(self) -> bool:
        """Whether `spark` would have to start a session in this process."""
        from mirrorlake.spark.home import starts_its_own

        return not self.session_there and starts_its_own()

    def later_session(self) -> SessionStart | None:
        """The start of the session, if this process has to start one: in the background by `begin`,
        or when `spark` is first used. None if a session is there already."""
        if not self.starts_session:
            return None
        if self._start is None or self._start.failed:  # its cause may be gone now
            self._start = SessionStart(self._opened)
        return self._start

    def _opened(self) -> "SparkSession":
        with needs("spark"):
            from pyspark.sql import SparkSession

            from mirrorlake.spark.session import open_session

        there = SparkSession.getActiveSession() is not None
        session = open_session(self.say, self.short, self._needs_delta())
        if not there and in_kernel():
            # makes DataFrames show their rows inline
            session.conf.set("spark.sql.repl.eagerEval.enabled", "true")
        return session

    def in_a_command(self) -> None:
        """Declare that only a command uses the lake in this process: no caller reads tables through
        Spark SQL, or passes pandas objects to Arrow."""
        self.by_files = True
        leave_pandas_out()

    def _needs_delta(self) -> bool:
        """Whether Spark reads or writes tables, and not only their files."""
        if not self.by_files or not self._is_folder or self.engine == "spark":
            return True
        root = self.root
        if root.in_store:  # no session reads its tables, and opening each would delay the JVM
            return False
        return native_problem() is not None or not all(
            rewrite_barrier((root / table).delta(without_files=True)) is None
            for table in TABLES
            if has_table(root, table)
        )

    @cached_property
    def tables(self) -> Lake:
        """The lake's tables. Raises LakeError, also without a lake unless `makes_lake`."""
        if not self.read_only and not self.makes_lake:
            self.check_there()
        opening = reading_lake if self.read_only else open_lake
        return opening(self._given or (lambda: self.spark), self.location, self.directory)

    @property
    def tables_there(self) -> bool:
        """Whether `tables` is open already."""
        return "tables" in self.__dict__

    @property
    def deployment(self) -> Deployment:
        """The lake's tables and the clusters, with an event log. Raises LakeError."""
        return Deployment.opened(self.tables, self.connections)

    @property
    def stored_id(self) -> str | None:
        """The identity stored in the lake (lake/identity.py), read without a session if the files
        are accessible; None if there is no lake or it has none."""
        if self.location.path is None:
            reader = self._files.reader
            return self.tables.stored_id if reader is None else reader.lake_id
        root = self.root
        there = has_table(root, "records")
        return PathTables(root).properties("records").get(PROPERTY) if there else None

    @property
    def absence(self) -> LakeError | None:
        """The error to raise if there is no lake at the path; a catalog's own tables are not
        checked. Opened by the topology file, a missing lake reads as an empty one."""
        there = not self._is_folder or has_table(self.root, "records")
        return None if there else no_lake(self.root)

    def check_there(self) -> None:
        """Raises LakeError without a lake: a search or deletion would find nothing and succeed."""
        if (absence := self.absence) is not None:
            raise absence

    @contextmanager
    def or_absent(self) -> Iterator[None]:
        """In this block a question that the tables have no answer to raises LakeError without a
        lake. Only then is the lake looked for: in a store that takes a request."""
        try:
            yield
        except InputError:
            self.check_there()
            raise

    @property
    def writable(self) -> Lake:
        """The lake to append to, which must exist. Raises LakeError, InputError."""
        by_files = self.location.path is not None and self._without_session()
        if by_files and self.read_only and not self.tables_there:
            raise LakeError("the lake was opened read-only; open it by the topology file")
        return self.tables

    @property
    def reader(self) -> Reader:
        """The tables as of now, read by the lake's engine.

        Raises InputError if the engine cannot read them, LakeError if there are none.
        """
        return (self.sessionless if self._without_session() else None) or self.tables

    @property
    def sessionless(self) -> Reader | None:
        """The tables now, without a session for any engine; None if only one can read them."""
        if not self._is_folder:
            return (None if self.engine == "duckdb" else self.warehouse) or self._files.reader
        self._duck.refresh()
        return self._duck

    @property
    def warehouse(self) -> Reader | None:
        """The tables, read by the topology file's SQL warehouse; None without one."""
        return None if self.location.warehouse is None else self._warehouse

    @cached_property
    def root(self) -> Place:
        """A lake's place; options are resolved once. Raises LakeError, TopologyError."""
        return lake_place(self.location, self.directory)

    @property
    def _is_folder(self) -> bool:
        return self.location.path is not None

    @cached_property
    def _duck(self) -> Reader:
        from mirrorlake.lake.duck import DuckLake  # reading by Spark does not need DuckDB

        root = self.root
        if self._topology is None and not has_table(root, "records"):
            raise no_lake(root)
        place = self.location.checkpoints
        return DuckLake(root, None if place is None else (self.directory / place).resolve())

    @cached_property
    def _files(self) -> FilesAtHand:
        return FilesAtHand(self.location, self.directory)

    @cached_property
    def _warehouse(self) -> Reader:
        from mirrorlake.lake.warehouse import warehouse_lake  # the connector is an extra

        return warehouse_lake(self.location, self.connections.resolve)

    def _without_session(self) -> bool:
        if self.engine == "duckdb" and not self._is_folder and self._files.reader is None:
            raise InputError(f"DuckDB cannot read the lake in {self.place}: {self._files.why_not}")
        return self.engine != "spark"


def in_kernel() -> bool:
    """Whether this process is a notebook's kernel: Jupyter's, or VS Code's."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
