"""Where mirrorlake's lakes lie while it is measured: in folders, in an object store, in one as
tables that a catalog knows by their URLs, or as the own tables of a catalog."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mirrorlake.devtools.local.metastore import Metastore, hive_metastore
from mirrorlake.devtools.local.object_store import ENVIRONMENT, ObjectStore, object_store


@dataclass(frozen=True)
class JobLake:
    """The lake of one run.

    Attributes:
        document: what its topology file says as `lake`.
        checkpoints: the folder below which a streaming query leaves its offsets.
        stage: the table of records as Spark's SQL names it; None where a session would need jars
            that mirrorlake does without.
    """

    document: Mapping[str, Any]
    checkpoints: Path
    stage: str | None


#: Gives the lake of a run, by its name and the folder of its topology file.
LakeOf = Callable[[str, Path], JobLake]


def in_folder(_name: str, directory: Path) -> JobLake:
    """A lake beside the topology file, as `mirrorlake init` writes it."""
    lake = directory / "lake"
    return JobLake({"path": "./lake"}, lake, f"delta.`{lake / 'records'}`")


@contextmanager
def _folders(_directory: Path) -> Iterator[LakeOf]:
    yield in_folder


@contextmanager
def _stores(directory: Path) -> Iterator[LakeOf]:
    with object_store(directory) as store, in_environment(ENVIRONMENT):
        yield lambda name, folder: _in_store(store, name, folder / "state")


@contextmanager
def _tables(directory: Path) -> Iterator[LakeOf]:
    with _stores(directory) as lake_of:
        yield lambda name, folder: _known_to_a_catalog(lake_of(name, folder))


@contextmanager
def _catalogs(directory: Path) -> Iterator[LakeOf]:
    with hive_metastore(directory) as metastore, in_environment(metastore.environment):
        yield lambda name, folder: _in_catalog(metastore, name, folder / "state")


#: The kinds of lakes by their names on the command line: what each needs, in a folder.
KINDS: Mapping[str, Callable[[Path], AbstractContextManager[LakeOf]]] = {
    "folder": _folders,
    "s3": _stores,
    "tables": _tables,
    "catalog": _catalogs,
}


def lakes_of(kind: str, directory: Path) -> AbstractContextManager[LakeOf]:
    """Start what lakes of one of KINDS need, in a new folder, for the time of the block. Processes
    that are started meanwhile get by their environment what they need to reach it."""
    directory.mkdir()
    return KINDS[kind](directory)


def _in_store(store: ObjectStore, name: str, state: Path) -> JobLake:
    return JobLake({**store.lake(name), "checkpoints": str(state)}, state, stage=None)


def _known_to_a_catalog(lake: JobLake) -> JobLake:
    """A lake whose tables `mirrorlake register` or a job tells a catalog of; a run needs none."""
    return replace(lake, document={**lake.document, "catalog": "main", "schema": "replication"})


def _in_catalog(metastore: Metastore, name: str, state: Path) -> JobLake:
    lake = metastore.lake(name.replace("-", "_"), state)
    return JobLake(lake, state, f"{lake['catalog']}.{lake['schema']}.records")


@contextmanager
def in_environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Have variables of the environment for the time of the block, which processes inherit."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
