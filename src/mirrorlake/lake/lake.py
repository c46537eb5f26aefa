"""The lake: where the tables live, made and opened by name.

A local lake is a directory with one Delta table a folder, known to the session under a schema of its own; in Unity
Catalog it is a schema. The rest of the package says `lake.sql(...)` and table names, and never a path.
"""

import hashlib
import os
import re
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from mirrorlake.core.topology import Lake as Location
from mirrorlake.errors import LakeError
from mirrorlake.lake.group_commit import GroupCommit

#: The tables of DESIGN section 4, `generations` (see core/survey.py) and `objectives` (see core/objectives.py), each
#: made by `sql/tables/<name>.sql`.
TABLES = (
    "records",
    "offset_map",
    "latency",
    "positions",
    "checkpoints",
    "changes",
    "incidents",
    "clusters",
    "audits",
    "generations",
    "objectives",
)
#: The views, in an order in which each finds those it is made of.
VIEWS = (
    "offset_translation",
    "replication_lag",
    "replication_latency",
    "throughput",
    "partition_minutes",
    "partition_status",
    "checkpoint_latency",
    "open_incidents",
    "flow_status",
    "group_positions",
    "divergence",
    "alerts",
)
#: Columns that a lake made by an earlier version lacks; they are added when it is opened.
ADDED_COLUMNS = {"checkpoints": {"read_at": "TIMESTAMP"}}
#: The layout of the tables that this code writes; a lake with a higher number is refused.
VERSION = 1

_CHANGE_ATTEMPTS = 5
_CONFLICTS = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED")
Answer = TypeVar("Answer")
_use = threading.RLock()


def sql_text(kind: str, name: str) -> str:
    """The text of `sql/<kind>/<name>.sql` as shipped in the package; kind is tables, views, queries or notebooks."""
    return (files("mirrorlake") / "sql" / kind / f"{name}.sql").read_text(encoding="utf-8")


class Lake:
    """The tables of one lake, bound to a Spark session. Make it with `open_lake`."""

    def __init__(
        self, spark: SparkSession, schema: str, directory: Path | None, checkpoints: Path, lake_id: str
    ) -> None:
        self.spark = spark
        self.schema = schema
        self.directory = directory
        self.checkpoints = checkpoints
        self.lake_id = lake_id
        self._views_made: set[str] = set()
        self._groups: dict[str, GroupCommit] = {}

    def name(self, table: str) -> str:
        """The qualified name of a table or view."""
        return f"{self.schema}.{table}"

    def table(self, table: str) -> DataFrame:
        """A table or view, read as of now."""
        self.make_views(table)
        return self.spark.table(self.name(table))

    def sql(self, text: str, args: Mapping[str, object] | None = None) -> DataFrame:
        """Run a statement in which bare table names mean this lake's; `args` fills `:named` parameters."""
        with _use:
            self.make_views(text)
            self.spark.sql(f"USE {self.schema}")
            return self.spark.sql(text, args=dict(args)) if args else self.spark.sql(text)

    def make_views(self, text: str) -> None:
        """Make the views that a text names, and those that they are made of, unless this session has them already.

        A session's catalog forgets them, and most commands need one or none of them.
        """
        with _use:
            for view in VIEWS:
                if view not in self._views_made and re.search(rf"\b{view}\b", text):
                    self._views_made.add(view)
                    made_of = sql_text("views", view)
                    self.make_views(made_of)
                    self.spark.sql(f"USE {self.schema}")
                    self.spark.sql(made_of)

    def views_are_there(self) -> None:
        """Make none of the views: this lake has them."""
        self._views_made.update(VIEWS)

    def query(self, name: str, **args: object) -> DataFrame:
        """Run `sql/queries/<name>.sql` of the package."""
        return self.sql(sql_text("queries", name), args)

    def query_over(self, name: str, frames: Mapping[str, DataFrame], **args: object) -> DataFrame:
        """Run `sql/queries/<name>.sql`, which names frames as `{frame}`."""
        text = sql_text("queries", name)
        with _use:
            self.make_views(text)
            self.spark.sql(f"USE {self.schema}")
            return self.spark.sql(text, args=dict(args), **frames)

    def change(self, name: str, **args: object) -> None:
        """Run a statement of the package that changes rows; once more where another process changed them just then."""
        self.retrying(lambda: self.query(name, **args))

    def retrying(self, work: Callable[[], Answer]) -> Answer:
        """Do what commits; again where the commit of another process, or thread, came in between."""
        for attempt in range(_CHANGE_ATTEMPTS):
            try:
                return work()
            except Exception as error:  # Spark hands Delta's own exceptions over as errors of py4j
                conflict = any(name in str(error) for name in _CONFLICTS)
                if not conflict or attempt == _CHANGE_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def append(self, table: str, rows: pa.Table, application: str | None = None, version: int = 0) -> None:
        """Append rows; columns that are missing become null.

        With `application` the append is idempotent: a second one with the same or a smaller `version` does nothing
        (Delta's txnAppId and txnVersion). Without, threads that append to the same table share commits.
        """
        if rows.num_rows == 0:
            return
        if application is not None:
            self._commit(table, rows, application, version)
            return
        with _use:
            if table not in self._groups:
                self._groups[table] = GroupCommit(partial(self._commit, table))
        self._groups[table].append(rows)

    def _commit(self, table: str, rows: pa.Table, application: str | None = None, version: int = 0) -> None:
        writer = self.spark.createDataFrame(rows).write.format("delta").mode("append")
        if application is not None:
            writer = writer.option("txnAppId", application).option("txnVersion", str(version))
        writer.saveAsTable(self.name(table))

    def version_of(self, table: str) -> int:
        """The newest committed version of a table."""
        return int(self.spark.sql(f"DESCRIBE HISTORY {self.name(table)} LIMIT 1").collect()[0]["version"])


def open_lake(spark: SparkSession, location: Location, directory: Path) -> Lake:
    """Open the lake of a topology whose file is in `directory`, and make what is missing of it.

    Raises LakeError when the place is not writable, holds something else, or was written by a newer version.
    """
    root, checkpoints = check_location(location, directory)
    schema = _open_schema(spark, location, root)
    lake = Lake(spark, schema, root, checkpoints, _lake_id(checkpoints))
    existing = _existing_tables(spark, schema)
    for table in TABLES:
        if table not in existing:
            _create_table(lake, table)
    _refuse_newer(lake)
    _add_columns(lake)
    if root is None:
        lake.make_views(" ".join(VIEWS))  # a catalog keeps them, for dashboards and other readers
    return lake


def reading_lake(spark: SparkSession, location: Location, directory: Path) -> Lake:
    """Open a lake to read it: one that is there already. In a catalog nothing is made, so readers need no more rights.

    Raises LakeError where there is none.
    """
    if location.path is None:
        schema = f"`{location.catalog}`.`{location.schema_name}`"
        lake = Lake(spark, schema, None, Path(), "")
        lake.views_are_there()
        if not {"records", "offset_map"} <= _existing_tables(spark, schema):
            raise LakeError(f"{schema} holds no lake; name the schema that `mirrorlake run` writes to")
        return lake
    root = (directory / location.path).resolve()
    if not (root / "records" / "_delta_log").is_dir():
        raise LakeError(f"there is no lake in {root}; `mirrorlake demo` makes one in ./mirrorlake-demo/lake")
    return open_lake(spark, location, directory)


def check_location(location: Location, directory: Path) -> tuple[Path | None, Path]:
    """The lake's directory (None in a catalog) and that of its checkpoints, proven writable. Raises LakeError."""
    root = None if location.path is None else (directory / location.path).resolve()
    return root, _checkpoint_root(location, root)


def _checkpoint_root(location: Location, root: Path | None) -> Path:
    """Where streaming checkpoints live; made if missing, and proven to be writable before anything else is done."""
    place = Path(location.checkpoints) if location.checkpoints else None
    if place is None and root is not None:
        place = root / "_checkpoints"
    if place is None:
        raise LakeError("lake.checkpoints is missing: a lake in a catalog needs a directory for streaming checkpoints")
    try:
        place.mkdir(parents=True, exist_ok=True)
        probe = place / f".probe-{uuid.uuid4().hex}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise LakeError(
            f"the lake at {root or place} is not writable ({error.strerror}); "
            "choose another lake.path or change its permissions",
            path=str(place),
        ) from error
    return place


def _lake_id(checkpoints: Path) -> str:
    """Eight characters that name this lake on target clusters, so that two lakes never share a transactional id."""
    return hashlib.sha256(os.fsencode(checkpoints.resolve())).hexdigest()[:8]


def _open_schema(spark: SparkSession, location: Location, root: Path | None) -> str:
    if root is None:
        schema = f"`{location.catalog}`.`{location.schema_name}`"
        if not spark.catalog.databaseExists(schema):  # who may use one need not have the right to make one
            spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        return schema
    schema = f"lake_{hashlib.sha256(os.fsencode(root)).hexdigest()[:12]}"
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema} LOCATION '{_quoted(root)}'")
    return schema


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace("'", "\\'")


def _existing_tables(spark: SparkSession, schema: str) -> set[str]:
    return {row["tableName"] for row in spark.sql(f"SHOW TABLES IN {schema}").collect()}


def _create_table(lake: Lake, table: str) -> None:
    """Make a table, or make the session know the one that a local lake has already."""
    place = None if lake.directory is None else lake.directory / table
    if place is not None and (place / "_delta_log").is_dir():
        lake.sql(f"CREATE TABLE {table} USING DELTA LOCATION '{_quoted(place)}'")
        return
    text = sql_text("tables", table)
    if place is not None:
        text = text.replace("USING DELTA", f"USING DELTA LOCATION '{_quoted(place)}'")
    try:
        lake.sql(text)
    except AnalysisException as error:
        raise LakeError(
            f"the lake at {lake.directory or lake.schema} is not usable: table {table} cannot be made there "
            f"({_first_line(error)})",
            table=table,
        ) from error


def _add_columns(lake: Lake) -> None:
    for table, columns in ADDED_COLUMNS.items():
        known = lake.spark.table(lake.name(table)).columns
        for column, kind in columns.items():
            if column not in known:
                lake.sql(f"ALTER TABLE {table} ADD COLUMNS ({column} {kind})")


def _refuse_newer(lake: Lake) -> None:
    properties = {
        row["key"]: row["value"] for row in lake.spark.sql(f"SHOW TBLPROPERTIES {lake.name('records')}").collect()
    }
    found = properties.get("mirrorlake.version", "0")
    if not re.fullmatch(r"\d+", found) or int(found) > VERSION:
        raise LakeError(
            f"the lake at {lake.directory or lake.schema} was written by a newer mirrorlake (layout {found}, this one "
            f"knows {VERSION}); upgrade mirrorlake, or use another lake",
            found=found,
        )


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0]


def arrow_table(rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> pa.Table:
    """Rows given as mappings, as an Arrow table; columns they lack become null."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
