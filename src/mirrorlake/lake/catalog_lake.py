"""A lake in a catalog, such as a schema of Unity Catalog: Spark commits and answers."""

import random
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from mirrorlake.errors import Fenced
from mirrorlake.lake.definitions import definition, sql_text
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.owners import OWNER_NUMBERS, fenced
from mirrorlake.lake.place import Place, place_of
from mirrorlake.lake.reader import Frame, Reader
from mirrorlake.lake.upkeep import TableUpkeep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: How many commits of the history are looked at before all of them are.
_NEWEST = 100
#: How often a process that takes over looks further up: the last step is a year in milliseconds.
_ATTEMPTS = 16


class CatalogLake(Lake):
    """The tables of a lake in a schema of a catalog.

    Numbered commits are Delta's application transactions, with an answer: Delta skips what an
    application has come to already (`txnAppId`, `txnVersion`) without a sign, and a catalog does
    not show how far an application is. So each commit says it in its own metadata, and the table's
    history shows whose is there.
    """

    opens_files: ClassVar[bool] = False
    log_properties: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self, opening: "Callable[[], SparkSession]", schema: str, checkpoints: Path | None
    ) -> None:
        super().__init__(opening, schema, None, checkpoints)

    @property
    def place(self) -> str:
        """See `Lake.place`."""
        return self.schema

    @property
    def leases(self) -> Place:
        """See `Lake.leases`: beside the checkpoints."""
        return place_of(self.checkpoints / "leases")

    @cached_property
    def reader(self) -> Reader:
        """See `Lake.reader`: Spark."""
        return self

    def with_all_columns(self, table: str) -> str:
        """See `Reader.with_all_columns`: a table lacks columns until a writer of this version has
        opened it."""
        known = set(self.table(table).columns)
        added = [
            f"CAST(NULL AS {column.spark_type}) AS {column.name}"
            for column in definition(table).columns
            if column.name not in known
        ]
        return f"SELECT {', '.join(['*', *added])} FROM {table}"

    def create(self, table: str, properties: Mapping[str, str]) -> None:
        """See `Lake.create`."""
        from pyspark.errors import AnalysisException  # only a process that makes tables needs it

        text = sql_text("tables", table)
        text = text.replace(f"EXISTS {table} (", f"EXISTS {self.schema}.{table} (", 1)
        given = "".join(f"'{name}' = '{value}', " for name, value in properties.items())
        try:
            self.spark.sql(text.replace("TBLPROPERTIES (", f"TBLPROPERTIES ({given}"))
        except AnalysisException as error:
            raise self._unusable(table, error) from error

    def properties(self, table: str) -> dict[str, str]:
        """See `Lake.properties`."""
        rows = self.spark.sql(f"SHOW TBLPROPERTIES {self.name(table)}").collect()
        return {row["key"]: row["value"] for row in rows}

    def features(self, table: str) -> set[str]:
        """See `Lake.features`."""
        (detail,) = self.spark.sql(f"DESCRIBE DETAIL {self.name(table)}").collect()
        return set(detail.asDict().get("tableFeatures") or ())

    def version_of(self, table: str) -> int:
        """See `Lake.version_of`."""
        (newest,) = self.spark.sql(f"DESCRIBE HISTORY {self.name(table)} LIMIT 1").collect()
        return int(newest["version"])

    def change(self, name: str, frames: Mapping[str, Frame] | None = None, **args: object) -> None:
        """See `Lake.change`."""
        self.retrying(lambda: self.rows(sql_text("queries", name), args, frames))

    def upkeep(self, table: str) -> TableUpkeep:
        """See `Lake.upkeep`: by Spark."""
        from mirrorlake.lake.spark_upkeep import SparkUpkeep  # only `maintain` and `forget` need it

        return SparkUpkeep(self, table)

    def fence(self, table: str, application: str, version: int) -> None:
        """See `Lake.fence`."""
        none = self.table(table).limit(0)
        self.retrying(lambda: self._numbered(none, table, application, version))

    def take_over(self, table: str, application: str, least: int) -> int:
        """See `Lake.take_over`. Numbers of an owner that ran an earlier version of this package are
        not known: where Delta skipped ours, it is tried further up."""
        known = self.application_version(table, application)
        # Two processes that take over at once differ.
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
        """See `Lake.application_version`: by commits of this class."""
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
        frame = self.spark.createDataFrame(rows)
        if application is None:
            frame.write.format("delta").mode("append").saveAsTable(self.name(table))
            return
        self._numbered(frame, table, application, version)
        known = self.application_version(table, application)
        if known != version:
            raise fenced(table, application, known, version)

    def _numbered(self, rows: "DataFrame", table: str, application: str, version: int) -> None:
        """Append rows as a version of an application; Delta does nothing where the application has
        come as far."""
        writer = rows.write.format("delta").mode("append")
        writer.option("userMetadata", f"{application} {version}").option("txnAppId", application)
        writer.option("txnVersion", str(version)).saveAsTable(self.name(table))

    def _find(self, table: str) -> None:
        """A catalog knows its tables."""
