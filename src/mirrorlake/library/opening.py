"""`mirrorlake.open`: the entry point."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from mirrorlake.config.lake import Lake as Location
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError
from mirrorlake.library.internals import Internals
from mirrorlake.library.lake import OpenLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open(
    topology: str | PathLike[str] | None = None,
    *,
    catalog: str | None = None,
    schema: str | None = None,
    path: str | PathLike[str] | None = None,
    read_only: bool = False,
    spark: "SparkSession | None" = None,
    engine: str | None = None,
) -> OpenLake:
    """Open a lake by its topology file, or by the place of its tables, read-only.

    Starts nothing: the first call that needs the session, the tables or a cluster opens them, and
    raises LakeError, MissingJava or ClusterUnusable if it cannot.

    Args:
        topology: the topology file, which enables all methods.
        catalog, schema: where the tables are in Unity Catalog. Reading needs only SELECT on them.
        path: the folder of a lake, or its URL in an object store, opened with the process's own
            credentials.
        read_only: open the topology's lake read-only: no table is created in it, and nothing can be
            produced from it.
        spark: the session to use; None for the active one, or else a local one.
        engine: the engine for answers that are not DataFrames: "duckdb", which needs no session and
            is the default for a folder, and for a catalog's own tables if their files are
            accessible; or "spark".

    Returns:
        The lake.

    Raises:
        TopologyError: the topology file does not exist or is invalid.
        InputError: the arguments are not exactly one of: topology; path; catalog and schema.
    """
    if topology is not None and catalog is None and schema is None and path is None:
        file = Path(topology)
        read = load_topology(file)
        internals = Internals(
            read.lake, read.directory, read, file, read_only=read_only, spark=spark, engine=engine
        )
        return OpenLake(internals)
    if topology is None and path is not None and catalog is None and schema is None:
        location = Location(path=str(path))
    elif topology is None and path is None and catalog and schema:
        location = Location(catalog=catalog, schema=schema)
    else:
        raise InputError("open a lake by one of: a topology file; path; catalog and schema")
    return OpenLake(Internals(location, Path.cwd(), spark=spark, engine=engine))
