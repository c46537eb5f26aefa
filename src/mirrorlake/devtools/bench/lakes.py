"""Places of lakes in benchmarks: folders, an object store (with tables registered), a catalog."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirrorlake.devtools.local.metastore import ENVIRONMENT, Metastore, hive_metastore, object_store
from mirrorlake.spark.home import in_environment


@dataclass(frozen=True)
class JobLake:
    """The lake of one run.

    Attributes:
        document: the `lake` block of its topology file.
        checkpoints: the folder below which a streaming query writes its offsets.
        stage: the records table in Spark SQL; None if a session would need jars that we do not use.
    """

    document: Mapping[str, Any]
    checkpoints: Path
    stage: str | None


#: Returns the lake of a run, by its name and the folder of its topology file.
LakeOf = Callable[[str, Path], JobLake]


def in_folder(_name: str, directory: Path) -> JobLake:
    """A lake beside the topology file, as `mirrorlake init` writes it."""
    lake = directory / "lake"
    return JobLake({"path": "./lake"}, lake, f"delta.`{lake / 'records'}`")


#: The kinds of lakes by their names on the command line.
KINDS = ("folder", "s3", "tables", "catalog")


@contextmanager
def lakes_of(kind: str, directory: Path) -> Iterator[LakeOf]:
    """Start the services that a kind of lakes needs, in a new folder, while the block runs.
    Processes started in the block get access through their environment."""
    directory.mkdir()
    if kind == "folder":
        yield in_folder
    elif kind == "catalog":
        with hive_metastore(directory) as metastore, in_environment(metastore.environment):
            yield lambda name, folder: _in_catalog(metastore, name, folder / "state")
    else:
        # `mirrorlake register` or a job registers tables; a run needs no catalog
        known = {"catalog": "main", "schema": "replication"} if kind == "tables" else {}
        with object_store(directory) as store, in_environment(ENVIRONMENT):
            yield lambda name, folder: _in_store(store.lake(name) | known, folder / "state")


def _in_store(lake: Mapping[str, object], state: Path) -> JobLake:
    return JobLake({**lake, "checkpoints": str(state)}, state, stage=None)


def _in_catalog(metastore: Metastore, name: str, state: Path) -> JobLake:
    lake = metastore.lake(name.replace("-", "_"), state)
    return JobLake(lake, state, f"{lake['catalog']}.{lake['schema']}.records")
