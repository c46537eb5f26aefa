"""Registers a lake's tables and views in a catalog: the body of `OpenLake.register`."""

from mirrorlake.errors import InputError, LakeError
from mirrorlake.lake.catalog_names import CatalogNames
from mirrorlake.lake.opening import names_in_catalog, schema_in_catalog
from mirrorlake.lake.registration import keep_views, register_tables
from mirrorlake.library.answers import Rows
from mirrorlake.library.internals import Internals
from mirrorlake.library.lake_answers import Registered


def prepare_to_register(known: Internals) -> None:
    """Have a future session start with Delta. Raises InputError if the file names no catalog."""
    if known.location.catalog is None:
        raise InputError(
            f"the lake at {known.place} has no names in a catalog; write lake.catalog and "
            "lake.schema beside lake.path"
        )
    known.by_files = False


def registered(known: Internals) -> Registered:
    """Register a lake's tables and views; returns and raises as `OpenLake.register`."""
    prepare_to_register(known)
    location, lake = known.location, known.tables
    lake.check_for_writing()
    tables: dict[str, str] = {}
    views: dict[str, str] = {}
    lake.keep_views()
    if location.path is not None:  # otherwise opening the lake has made the tables
        names = _names(known)
        tables = register_tables(names, lake.place)
        views = keep_views(names)
    return Registered(
        str(location.catalog),
        str(location.schema_name),
        location.path,
        Rows({"table": name, "action": action} for name, action in tables.items()),
        Rows({"view": name, "action": action} for name, action in views.items()),
    )


def _names(known: Internals) -> CatalogNames:
    """The catalog's names, through the topology file's SQL warehouse, else through the session."""
    warehouse, location = known.warehouse, known.location
    if warehouse is not None:
        return CatalogNames(warehouse.rows, schema_in_catalog(location))
    is_own, spark = known.starts_session, known.spark
    forgets = spark.conf.get("spark.sql.catalogImplementation", None) != "hive"
    if is_own and forgets and location.catalog == "spark_catalog":
        raise LakeError(
            "the session that this process starts has a catalog that ends with it; register where "
            "a session is given (Databricks, SPARK_REMOTE, spark-submit), name a SQL warehouse as "
            "lake.warehouse, or set spark.sql.catalogImplementation to hive in spark-defaults.conf"
        )
    return names_in_catalog(spark, location)
