"""Opens a lake: proves that its place can be written to, makes what is missing, refuses one of a newer version."""

import hashlib
import os
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError

from mirrorlake.config.topology import Lake as Location
from mirrorlake.errors import LakeError, first_line
from mirrorlake.lake.catalog_views import keep_views
from mirrorlake.lake.definitions import TABLES, VIEWS, sql_text
from mirrorlake.lake.identity import PROPERTY, new_identity, properties_of
from mirrorlake.lake.lake import Lake, has_table, quoted

if TYPE_CHECKING:  # answers without Spark (lake/duck.py) come by this module too
    from pyspark.sql import SparkSession

#: The layout of the tables that this code writes; a lake with a higher number is refused.
VERSION = 1


def open_lake(session: "SparkSession | Callable[[], SparkSession]", location: Location, directory: Path) -> Lake:
    """Open the lake of a topology whose file is in `directory`, and make what is missing of it.

    `session` may be what opens one: of a lake in a folder it is asked for when it is first needed. Raises LakeError
    when the place is not writable, holds something else, or was written by a newer version.
    """
    root, checkpoints = check_location(location, directory)
    if root is not None:
        return _open_folder(root, checkpoints, partial(_opened, session))
    spark = _opened(session)
    schema = _schema_in_catalog(location)
    if not spark.catalog.databaseExists(schema):  # who may use one need not have the right to make one
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    lake = Lake(lambda: spark, schema, None, checkpoints)
    existing = _existing_tables(spark, schema)
    lake.mark_known(existing)
    _create_tables(lake, [table for table in TABLES if table not in existing])
    _read_properties(lake)
    for table in existing & set(TABLES):
        lake.add_columns(table)
    keep_views(lake)  # a catalog has them for dashboards and other readers
    return lake


def reading_lake(session: "SparkSession | Callable[[], SparkSession]", location: Location, directory: Path) -> Lake:
    """Open a lake to read it: one that is there already. In a catalog nothing is made, so readers need no more rights.

    Nothing can be produced from it (see `Lake`); `session` as in `open_lake`. Raises LakeError where there is none.
    """
    if location.path is None:
        spark = _opened(session)
        schema = _schema_in_catalog(location)
        lake = Lake(lambda: spark, schema, None, None)
        existing = _existing_tables(spark, schema)
        lake.mark_known(existing, VIEWS)
        if not {"records", "offset_map"} <= existing:
            raise LakeError(f"{schema} holds no lake; name the schema that `mirrorlake run` writes to")
        _read_properties(lake)
        return lake
    root = folder_of(location.path, directory)
    if not has_table(root, "records"):
        raise no_lake(root)
    return _open_folder(root, None, partial(_opened, session))


def _open_folder(root: Path, checkpoints: Path | None, session: "Callable[[], SparkSession]") -> Lake:
    """A session knows the lake under a schema of its own, and each table when it is first named there."""
    schema = f"lake_{hashlib.sha256(os.fsencode(root)).hexdigest()[:12]}"

    def opened() -> "SparkSession":
        spark = session()
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema} LOCATION '{quoted(root)}'")
        return spark

    lake = Lake(opened, schema, root, checkpoints)
    _create_tables(lake, [table for table in TABLES if not has_table(root, table)])
    _read_properties(lake)
    return lake


def _opened(session: "SparkSession | Callable[[], SparkSession]") -> "SparkSession":
    return session() if callable(session) else session


def no_lake(root: Path) -> LakeError:
    """What is said of a folder that holds none."""
    return LakeError(f"there is no lake in {root}; `mirrorlake demo` makes one in ./mirrorlake-demo/lake")


def lake_exists(location: Location, directory: Path) -> bool:
    """Whether a lake is there already, as far as can be known without a session: in a catalog one may be."""
    return location.path is None or has_table(folder_of(location.path, directory), "clusters")


def check_location(location: Location, directory: Path) -> tuple[Path | None, Path]:
    """The lake's directory (None in a catalog) and that of its checkpoints, proven writable. Raises LakeError."""
    root = None if location.path is None else folder_of(location.path, directory)
    if root is not None:
        _check_characters(root)
    return root, _checkpoint_root(location, root)


def folder_of(path: str, directory: Path) -> Path:
    """The folder that `lake.path` names. Raises LakeError for a URL, which would become a folder of that name here."""
    if re.match(r"[A-Za-z][\w+.-]*:", path):
        raise LakeError(
            f"the lake cannot be at {path}: a path is a folder, which a mount of object storage may be; mount it, or "
            "use catalog and schema"
        )
    return (directory / path).resolve()


def _check_characters(root: Path) -> None:
    """Refuse a folder that delta-rs cannot open, whatever is in it."""
    if found := re.search(r"[\[\]]|%[0-9A-Fa-f]{2}", str(root)):
        raise LakeError(
            f"the lake cannot be at {root}: no folder of its path may have {found[0]} in its name; choose another"
        )


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
            "choose another lake.path or change its permissions"
        ) from error
    return place


def _schema_in_catalog(location: Location) -> str:
    return f"`{location.catalog}`.`{location.schema_name}`"


def _existing_tables(spark: "SparkSession", schema: str) -> set[str]:
    return {row["tableName"] for row in spark.sql(f"SHOW TABLES IN {schema}").collect()}


def _create_tables(lake: Lake, tables: Sequence[str]) -> None:
    """Make tables; of two processes that make a lake at once, the first commit of `records` names it."""
    if lake.path_tables is None:
        with ThreadPoolExecutor(2) as pool:  # each is a commit of its own
            list(pool.map(partial(_create_in_catalog, lake), tables))  # the list raises what a thread raised
        lake.mark_known(tables)
        return
    for table in tables:
        try:
            lake.path_tables.create(table, {PROPERTY: new_identity()} if table == "records" else None)
        except (DeltaError, OSError) as error:
            raise _unusable(lake, table, error) from error


def _create_in_catalog(lake: Lake, table: str) -> None:
    from pyspark.errors import AnalysisException  # only who makes tables needs it

    text = sql_text("tables", table).replace(f"EXISTS {table} (", f"EXISTS {lake.schema}.{table} (", 1)
    if table == "records":
        text = text.replace("TBLPROPERTIES (", f"TBLPROPERTIES ('{PROPERTY}' = '{new_identity()}', ")
    try:
        lake.spark.sql(text)
    except AnalysisException as error:
        raise _unusable(lake, table, error) from error


def _unusable(lake: Lake, table: str, error: Exception) -> LakeError:
    said = f"table {table} cannot be made there ({first_line(error)})"
    return LakeError(f"the lake at {lake.place} is not usable: {said}")


def _read_properties(lake: Lake) -> None:
    """Take over the lake's identity. Raises LakeError for a lake of a newer version."""
    properties = properties_of(lake)
    lake.stored_id = properties.get(PROPERTY)
    check_version(properties, lake.place)


def check_version(properties: Mapping[str, str], place: str) -> None:
    """Raise LakeError for a lake of a newer version, by the properties of its table `records`."""
    found = properties.get("mirrorlake.version", "0")
    if not re.fullmatch(r"\d+", found) or int(found) > VERSION:
        raise LakeError(
            f"the lake at {place} was written by a newer mirrorlake (layout {found}, this one "
            f"knows {VERSION}); upgrade mirrorlake, or use another lake"
        )
