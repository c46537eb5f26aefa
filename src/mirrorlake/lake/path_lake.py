"""A lake at a path or URL: delta-rs commits, DuckDB answers; a Spark session only when needed."""

import logging
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake.exceptions import DeltaError

from mirrorlake.errors import LakeError
from mirrorlake.lake.definitions import definition, sql_text
from mirrorlake.lake.delta_log import files_of, rewrite_barrier
from mirrorlake.lake.folder import has_table, leases_at, quoted, schema_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.layout import log_properties
from mirrorlake.lake.other_writers import is_one_writer
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import Place
from mirrorlake.lake.reader import NONE, Frame, Reader
from mirrorlake.lake.upkeep import TableUpkeep
from mirrorlake.spark.home import NO_DELTA_SETTING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)


class PathLake(Lake):
    """The tables of a lake at a place, each a Delta table in its own folder. Queries, appends and
    changes need no session; one is opened when it is first needed.

    Attributes:
        tables: commits to the tables.
        one_writer: see `is_one_writer`.
    """

    opens_files: bool = True

    def __init__(
        self,
        opening: "Callable[[], SparkSession]",
        root: Place,
        checkpoints: Path | None,
        registered: bool = False,
    ) -> None:
        super().__init__(opening, schema_of(root), root, checkpoints)
        self.root = root
        self.one_writer = is_one_writer(root, registered)
        self.tables = PathTables(root)

    @property
    def place(self) -> str:
        return str(self.root)

    @property
    def leases(self) -> Place:
        """See `Lake.leases`: in the lake itself, wherever a topology file puts the checkpoints."""
        self.check_for_writing()
        return leases_at(self.root)

    @cached_property
    def reader(self) -> Reader:
        from mirrorlake.lake.duck import DuckLake  # DuckDB's import takes time, and not all need it

        return DuckLake(self.root, self._checkpoints, whole=True)  # opening it made all tables

    def create(self, table: str, properties: Mapping[str, str]) -> None:
        try:
            self.tables.create(table, properties)
        except (DeltaError, OSError) as error:
            raise self._unusable(table, error) from error

    def properties(self, table: str) -> dict[str, str]:
        return self.tables.properties(table)

    def features(self, table: str) -> set[str]:
        return self.tables.features(table)

    def version_of(self, table: str) -> int:
        return self.tables.version(table)

    def log_properties(self, table: str) -> Mapping[str, str]:
        return log_properties(table)

    def check_there(self) -> None:
        self.tables.check_there()

    def known_version(self, table: str) -> int | None:
        return self.tables.known_version(table) if self.in_store else None

    def change(self, name: str, frames: Mapping[str, Frame] = NONE, **args: object) -> None:
        from mirrorlake.lake.duck_changes import RowChange

        change = RowChange(sql_text("queries", name), args, frames)
        self.tables.rewrite(change.table, change.applied_to)

    def upkeep(self, table: str) -> TableUpkeep:
        """See `Lake.upkeep`: without Spark, unless only Spark can rewrite the table."""
        barred = rewrite_barrier(self.tables.opened(table))
        if barred is None:
            from mirrorlake.lake.folder_upkeep import FolderUpkeep  # DuckDB's import takes time

            return FolderUpkeep(self, table)
        logger.warning("table %s is kept by Spark, which has to be there, since %s", table, barred)
        from mirrorlake.lake.spark_upkeep import SparkUpkeep

        return SparkUpkeep(self, table)

    def fence(self, table: str, application: str, version: int) -> None:
        self.tables.fence(table, application, version)

    def take_over(self, table: str, application: str, least: int) -> int:
        return self.tables.take_over(table, application, least)

    def application_version(self, table: str, application: str) -> int | None:
        return self.tables.application_version(table, application)

    def _commit(
        self, table: str, rows: pa.Table, application: str | None = None, version: int = 0
    ) -> None:
        self.tables.append(table, rows, application, version)

    def _open_session(self) -> "SparkSession":
        spark = super()._open_session()
        # of a store Spark reads no tables
        location = "" if self.in_store else f" LOCATION '{quoted(self.root)}'"
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self.schema}{location}")
        return spark

    def table(self, table: str) -> "DataFrame":
        """See `Lake.table`: in a session without Delta, the table's Parquet files as of now."""
        if self.in_store or not self._lacks_delta:
            return super().table(table)
        layout = ", ".join(f"`{each.name}` {each.spark_type}" for each in definition(table).columns)
        files = files_of(self.tables.opened(table))
        if not files:
            return self.spark.createDataFrame([], layout)
        # Spark reads some characters as patterns.
        paths = [
            re.sub(r"([*?{}\[\]\\])", r"\\\1", f"{self.root / table}/{path}") for path in files
        ]
        return self.spark.read.schema(layout).parquet(*paths)

    @property
    def _lacks_delta(self) -> bool:
        return self.spark.conf.get(NO_DELTA_SETTING, None) is not None

    def _find(self, table: str) -> None:
        if self.in_store:
            raise LakeError(
                f"table {table} of the lake at {self.root} is not read by Spark, but by DuckDB: "
                "ask without --engine spark"
            )
        if self._lacks_delta:
            raise LakeError(
                f"table {table} of the lake at {self.root} is to be read by Spark, whose session "
                "has no Delta: ask with --engine spark, or in a process of its own"
            )
        if has_table(self.root, table):
            place = quoted(self.root / table)
            self.spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self.schema}.{table} USING DELTA LOCATION '{place}'"
            )
            self._tables_known.add(table)
            self.add_columns(table)
