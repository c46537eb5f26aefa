"""Opens a lake: checks that it is writable, makes what is missing, refuses a newer version."""

import logging
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import InputError, LakeError
from mirrorlake.lake.catalog_files import NotedFiles, files_by_catalog, note_files
from mirrorlake.lake.catalog_lake import CatalogLake
from mirrorlake.lake.catalog_names import CatalogNames, catalog_answers, names_by_session
from mirrorlake.lake.conditional_puts import check_conditional_puts
from mirrorlake.lake.definitions import TABLES, VIEWS
from mirrorlake.lake.folder import (
    LEASES,
    check_characters,
    has_table,
    lake_place,
    leases_at,
    no_lake,
    own_folder,
)
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import Place, place_of
from mirrorlake.lake.properties import PROPERTY, check_version, initial_properties
from mirrorlake.lake.registration import check_own
from mirrorlake.threads import side_by_side

if TYPE_CHECKING:  # answers without Spark (lake/duck.py) come by this module too
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


def open_lake(
    session: "SparkSession | Callable[[], SparkSession]", location: Location, directory: Path
) -> Lake:
    """Open the lake of a topology, with its file in `directory`, for writing; make what it lacks.

    `session` may be a function that opens one; a folder's lake calls it when it needs one. Raises
    LakeError when the place is not writable, holds something else, or is of a newer version.
    """
    root, checkpoints = check_location(location, directory)
    if root is not None:
        return _open_folder(root, checkpoints, partial(_opened, session), location)
    spark, schema = _opened(session), schema_in_catalog(location)
    with catalog_answers(schema):
        return _open_schema(spark, schema, checkpoints)


def _open_schema(spark: "SparkSession", schema: str, checkpoints: Path) -> Lake:
    _make_schema(spark, schema)
    lake = CatalogLake(lambda: spark, schema, checkpoints)
    lake.mark_known(TABLES, ())
    names = names_by_session(lake)
    existing = names.known & set(TABLES)
    if "records" in existing:
        check_own(names, "records")
    missing = [table for table in TABLES if table not in existing]
    _create_tables(lake, missing)
    _read_properties(lake)
    lake.names = names_by_session(lake) if missing else names
    _use_files(lake, lake.names, checkpoints)
    for table in existing:
        lake.add_columns(table)
    return lake


def _use_files(lake: CatalogLake, names: CatalogNames, checkpoints: Path) -> None:
    """Answer from the tables' files where they are at hand, and note where they lie, or that they
    are not, for processes without a session. The lake's identity tells if the files are its own."""
    from mirrorlake.lake.catalog_reader import CatalogReader  # DuckDB's import takes time

    noted: NotedFiles | None = None
    try:
        files = files_by_catalog(names)
        if files is not None:
            reader = CatalogReader(files, checkpoints)
            if lake.stored_id is None or reader.lake_id != lake.stored_id:
                raise LakeError(f"what lies at {files.root} here is another lake")
            lake.use_files(reader)
            noted = reader.noted
    except (InputError, OSError) as error:
        logger.info("the tables of %s are read by Spark alone: %s", names.place, error)
    try:
        note_files(checkpoints, noted)
    except OSError as error:
        logger.warning("where the tables of %s lie cannot be noted: %s", names.place, error)


def names_in_catalog(spark: "SparkSession", location: Location) -> CatalogNames:
    """Names of a topology file's schema, by a session; makes a missing one. Raises LakeError."""
    schema = schema_in_catalog(location)
    with catalog_answers(schema):
        _make_schema(spark, schema)
    lake = CatalogLake(lambda: spark, schema, None)
    lake.mark_known(TABLES, VIEWS)
    return lake.names


def reading_lake(
    session: "SparkSession | Callable[[], SparkSession]", location: Location, directory: Path
) -> Lake:
    """Open an existing lake to read it. In a catalog it makes nothing: readers need no more rights.

    Nothing is produced from it (`Lake`). `session`: as in `open_lake`. Raises LakeError if none.
    """
    if location.path is None:
        spark, schema = _opened(session), schema_in_catalog(location)
        with catalog_answers(schema):
            return _reading_schema(spark, schema)
    root = lake_place(location, directory)
    if not has_table(root, "records"):
        raise no_lake(root)
    return _open_folder(root, None, partial(_opened, session), location)


def _reading_schema(spark: "SparkSession", schema: str) -> Lake:
    lake = CatalogLake(lambda: spark, schema, None)
    existing = {row["tableName"] for row in spark.sql(f"SHOW TABLES IN {schema}").collect()}
    lake.mark_known(existing, VIEWS)
    if not {"records", "offset_map"} <= existing:
        raise LakeError(f"{schema} holds no lake; name the schema that `mirrorlake run` writes to")
    _read_properties(lake)
    return lake


def _open_folder(
    root: Place, checkpoints: Path | None, session: "Callable[[], SparkSession]", location: Location
) -> Lake:
    lake = PathLake(session, root, checkpoints, registered=location.catalog is not None)
    there = _tables_at(root)
    missing = [table for table in TABLES if table not in there]
    # A lake in a store may be a copy, made from one that takes conditional puts.
    if "records" in missing or (root.in_store and checkpoints is not None):
        check_conditional_puts(root)
    _create_tables(lake, missing)
    _read_properties(lake)
    return lake


def _tables_at(root: Place) -> set[str]:
    """The tables at a place. In a store, where each look takes time, a listing rules some out."""
    known = set(root.names()).intersection(TABLES) if root.in_store else {*TABLES}
    there = side_by_side(partial(has_table, root), known)
    return {table for table, is_there in zip(known, there, strict=True) if is_there}


def _opened(session: "SparkSession | Callable[[], SparkSession]") -> "SparkSession":
    return session() if callable(session) else session


def lake_exists(location: Location, directory: Path) -> bool:
    """Whether a lake exists, as far as can be known without a session: in a catalog one may."""
    return location.path is None or has_table(lake_place(location, directory), "clusters")


def leases_of(location: Location, directory: Path) -> Place | None:
    """The place of a lake's leases (`Lake.leases`), which need not exist; None where
    `check_location` reports a missing setting. Raises LakeError."""
    if location.path is not None:
        return leases_at(lake_place(location, directory))
    return None if location.checkpoints is None else place_of(Path(location.checkpoints) / LEASES)


def check_location(location: Location, directory: Path) -> tuple[Place | None, Path]:
    """The lake's place (None in a catalog) and writable folder of checkpoints. Raises LakeError."""
    root = None if location.path is None else lake_place(location, directory)
    if root is not None:
        check_characters(root)
    return root, _checkpoint_root(location, root)


def _checkpoint_root(location: Location, root: Place | None) -> Path:
    """The directory of streaming checkpoints; made if missing, and first checked to be writable."""
    place = Path(location.checkpoints) if location.checkpoints else None
    if place is None and root is not None:
        place = own_folder(root)
    if place is None:
        raise LakeError(
            "lake.checkpoints is missing: a lake in a catalog needs a directory for streaming "
            "checkpoints"
        )
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


def _make_schema(spark: "SparkSession", schema: str) -> None:
    if not spark.catalog.databaseExists(schema):
        # a principal may use a schema without the right to make one
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")


def schema_in_catalog(location: Location) -> str:
    """The schema that a topology file names, quoted for SQL."""
    return f"`{location.catalog}`.`{location.schema_name}`"


def _create_tables(lake: Lake, tables: Sequence[str]) -> None:
    """Create tables, each in a commit of its own."""
    side_by_side(lambda table: lake.create(table, initial_properties(table)), tables)


def _read_properties(lake: Lake) -> None:
    """Read the lake's identity from `records`. Raises LakeError for a newer version."""
    properties = lake.properties("records")
    lake.stored_id = properties.get(PROPERTY)
    check_version(properties, lake.place)
