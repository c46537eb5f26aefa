"""`mirrorlake.open`: the way in."""

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
    """Open a lake: by the topology file, or by the place of its tables, to read them.

    Starts nothing: the session, the tables and the clusters are opened by the first call that needs
    them, which raises LakeError, MissingJava or ClusterUnusable where they cannot be.

    Args:
        topology: the topology file. With it everything can be asked, and done.
        catalog, schema: where the tables are in Unity Catalog. Reading needs SELECT on them and no
            more rights.
        path: the folder of a lake, or its URL in an object store, which the credentials of the
            process itself then open.
        read_only: open the topology's lake to be read: nothing is made in it, and nothing can be
            produced from it.
        spark: the session to use; the active one, or a local one, for None.
        engine: what answers that are no DataFrames are read by: "duckdb", which is the default for
            a folder, and for a catalog's own tables where their files are at hand, and needs no
            session; or "spark".

    Returns:
        The lake.

    Raises:
        TopologyError: the topology file is not there, or says something that cannot be.
        InputError: not exactly one of the three ways was given.
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
