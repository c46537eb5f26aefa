"""A lake in a catalog, such as a schema of Unity Catalog: Spark commits and answers."""

import logging
import random
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from mirrorlake.errors import Fenced, LakeError
from mirrorlake.lake.catalog_names import CatalogNames, names_by_session
from mirrorlake.lake.definitions import VIEWS, definition, sql_text
from mirrorlake.lake.folder import LEASES
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.owners import OWNER_NUMBERS, fenced
from mirrorlake.lake.place import Place, place_of
from mirrorlake.lake.reader import NONE, Frame, Reader
from mirrorlake.lake.registration import keep_view
from mirrorlake.lake.upkeep import TableUpkeep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mirrorlake.lake.catalog_reader import CatalogReader
    from mirrorlake.lake.duck_changes import RowChange

logger = logging.getLogger(__name__)

_SHOW = re.compile(r"\s*SHOW\b", re.IGNORECASE)
#: The application of the first rows of a table that is changed otherwise, and its only version.
_FIRST_ROWS = "first rows", 1
#: How many commits of the history are read before all of it is.
_NEWEST = 100
#: How often a process that takes over tries a higher number: the last step is a year in ms.
_ATTEMPTS = 16


class CatalogLake(Lake):
    """The tables of a lake in a schema of a catalog.

    Numbered commits are Delta's application transactions (`txnAppId`, `txnVersion`), with an
    answer: Delta skips a version that an application has already reached without a sign, and a
    catalog does not show that version. So each commit also records it in its own metadata, and the
    table's history shows whose commit is there.

    Where the tables' files are at hand, these and the logs answer this process's own queries: Spark
    takes half a second where they take a millisecond. They show the newest version, as Spark does.
    Spark always answers `rows` and `sql` of the lake itself.
    """

    opens_files: bool = False

    def __init__(
        self, opening: "Callable[[], SparkSession]", schema: str, checkpoints: Path | None
    ) -> None:
        super().__init__(opening, schema, None, checkpoints)
        self._files: CatalogReader | None = None

    @property
    def files(self) -> "CatalogReader | None":
        """The reader of the tables' files; None where they are not, or no longer, at hand."""
        return None if self._files is None or self._files.lost else self._files

    def use_files(self, files: "CatalogReader") -> None:
        """Answer from the tables' files from now on."""
        self._files = files
        self.opens_files = not files.files.place.in_store

    def stop_using_files(self) -> None:
        """Answer by Spark alone from now on: the files no longer show what the tables hold."""
        self._files, self.opens_files = None, False

    @property
    def place(self) -> str:
        return self.schema

    @property
    def leases(self) -> Place:
        """See `Lake.leases`: beside the checkpoints."""
        return place_of(self.checkpoints / LEASES)

    @property
    def reader(self) -> Reader:
        """See `Lake.reader`: DuckDB where the files are at hand, otherwise Spark."""
        return self.files or self

    @cached_property
    def names(self) -> CatalogNames:
        """The names in the schema, as of their first use."""
        return names_by_session(self)

    def keep_views(self, most: int | None = None) -> None:
        """See `Lake.keep_views`. All take Spark as long as the first batch: opening makes none."""
        for view in [view for view in VIEWS if view not in self._views_made][:most]:
            self.make_known(view)

    def make_known(self, text: str) -> None:
        """See `SessionTables.make_known`. A catalog shows what it has."""
        if not _SHOW.match(text):
            super().make_known(text)

    def _make_view(self, view: str) -> None:
        keep_view(self.names, view)

    def with_all_columns(self, table: str) -> str:
        """See `Reader.with_all_columns`: a table lacks newer ones until a writer opens it."""
        known = self.columns(table)
        added = [
            f"CAST(NULL AS {column.spark_type}) AS {column.name}"
            for column in definition(table).columns
            if column.name not in known
        ]
        return f"SELECT {', '.join(['*', *added])} FROM {table}"

    def create(self, table: str, properties: Mapping[str, str]) -> None:
        from pyspark.errors import AnalysisException  # only a process that makes tables needs it

        text = sql_text("tables", table)
        text = text.replace(f"EXISTS {table} (", f"EXISTS {self.schema}.{table} (", 1)
        given = "".join(f"'{name}' = '{value}', " for name, value in properties.items())
        try:
            self.spark.sql(text.replace("TBLPROPERTIES (", f"TBLPROPERTIES ({given}"))
        except AnalysisException as error:
            raise self._unusable(table, error) from error

    def columns(self, table: str) -> set[str]:
        """The names of a table's columns."""
        return set(self.table(table).columns) if self.files is None else self.files.columns(table)

    def add_columns(self, table: str) -> None:
        wanted = {column.name for column in definition(table).columns}
        if self.files is None or not wanted <= self.files.columns(table):
            super().add_columns(table)

    def properties(self, table: str) -> dict[str, str]:
        if self.files is not None:
            return self.files.properties(table)
        rows = self.spark.sql(f"SHOW TBLPROPERTIES {self.name(table)}").collect()
        return {row["key"]: row["value"] for row in rows}

    def features(self, table: str) -> set[str]:
        if self.files is not None:
            return self.files.features(table)
        (detail,) = self.spark.sql(f"DESCRIBE DETAIL {self.name(table)}").collect()
        return set(detail.asDict().get("tableFeatures") or ())

    def version_of(self, table: str) -> int:
        if self.files is not None:
            return self.files.version(table)
        (newest,) = self.spark.sql(f"DESCRIBE HISTORY {self.name(table)} LIMIT 1").collect()
        return int(newest["version"])

    def change(self, name: str, frames: Mapping[str, Frame] = NONE, **args: object) -> None:
        """See `Lake.change`. A change that visibly changes nothing is left out, and one that fills
        an empty table appends: Spark takes seconds for a MERGE, ten for the first of a session."""
        from mirrorlake.lake.duck_changes import RowChange  # DuckDB's import takes time

        text = sql_text("queries", name)
        if self.files is not None:
            change = RowChange(text, args, frames)
            try:
                if self._shows_done(self.files, change):
                    return
            except LakeError as error:
                logger.info("%s; Spark is asked", error)
        self.retrying(lambda: self.rows(text, args, frames))

    def _shows_done(self, files: "CatalogReader", change: "RowChange") -> bool:
        """Whether the files show that nothing is left of a change, after it has filled an empty
        table. If two processes fill it at the same time, Delta takes the rows of one, and the other
        sees them here. Raises LakeError if the files cannot be read."""
        rows = files.rows_of(change.table)
        changed = change.applied_to(rows)
        if changed is None or rows.num_rows:
            return changed is None
        filled = changed.cast(rows.schema)
        self.retrying(lambda: self._commit(change.table, filled, *_FIRST_ROWS))
        return bool(files.rows_of(change.table).equals(filled))

    def upkeep(self, table: str) -> TableUpkeep:
        from mirrorlake.lake.spark_upkeep import SparkUpkeep  # only `maintain` and `forget` need it

        return SparkUpkeep(self, table)

    def fence(self, table: str, application: str, version: int) -> None:
        none = self.table(table).limit(0)
        self.retrying(lambda: self._numbered(none, table, application, version))

    def take_over(self, table: str, application: str, least: int) -> int:
        """See `Lake.take_over`. The numbers of an owner that ran an earlier version of this package
        are not known: where Delta skipped ours, a higher one is tried."""
        known = self.application_version(table, application)
        # So two processes that take over at once get different numbers.
        number = max(least, (known or 0) + OWNER_NUMBERS) + random.randrange(1000)
        for attempt in range(_ATTEMPTS):
            self.fence(table, application, number)
            if (known := self.application_version(table, application)) == number:
                return number
            number = max(number, known or 0) + (OWNER_NUMBERS << attempt)
        raise Fenced(
            f"{application} has come further in {table} than any clock says; give the lake a new "
            "identity"
        )

    def application_version(self, table: str, application: str) -> int | None:
        """See `Lake.application_version`: without files, by what these commits recorded."""
        if self.files is not None:
            return self.files.application_version(table, application)
        for limit in (f"LIMIT {_NEWEST}", ""):
            history = self.spark.sql(f"DESCRIBE HISTORY {self.name(table)} {limit}")
            commits = history.select("userMetadata").collect()
            names = [str(row["userMetadata"]).rpartition(" ") for row in commits]
            newest = max(
                (int(number) for name, _, number in names if name == application), default=None
            )
            if newest is not None or len(commits) < _NEWEST:
                return newest
        return None

    def _commit(
        self, table: str, rows: pa.Table, application: str | None = None, version: int = 0
    ) -> None:
        # Otherwise Spark would start a task and write a file per core for rows of this process.
        frame = self.spark.createDataFrame(rows).coalesce(1)
        if application is None:
            frame.write.format("delta").mode("append").saveAsTable(self.name(table))
            return
        self._numbered(frame, table, application, version)
        known = self.application_version(table, application)
        if known != version:
            raise fenced(table, application, known, version)

    def _numbered(self, rows: "DataFrame", table: str, application: str, version: int) -> None:
        """Append rows as an application's version; Delta skips one that it has already reached."""
        writer = rows.write.format("delta").mode("append")
        writer.option("userMetadata", f"{application} {version}").option("txnAppId", application)
        writer.option("txnVersion", str(version)).saveAsTable(self.name(table))

    def _find(self, table: str) -> None:
        """Do nothing: a catalog knows its tables."""
