"""Where mirrorlake's lakes lie while it is measured: in folders, in an object store, in one as
tables that a catalog knows by their URLs, or as the own tables of a catalog."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirrorlake.devtools.local.metastore import Metastore, hive_metastore
from mirrorlake.devtools.local.object_store import ENVIRONMENT, object_store


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


#: The kinds of lakes by their names on the command line.
KINDS = ("folder", "s3", "tables", "catalog")


@contextmanager
def lakes_of(kind: str, directory: Path) -> Iterator[LakeOf]:
    """Start what lakes of one of KINDS need, in a new folder, for the time of the block. Processes
    that are started meanwhile get by their environment what they need to reach it."""
    directory.mkdir()
    if kind == "folder":
        yield in_folder
    elif kind == "catalog":
        with hive_metastore(directory) as metastore, in_environment(metastore.environment):
            yield lambda name, folder: _in_catalog(metastore, name, folder / "state")
    else:
        # `mirrorlake register` or a job tells a catalog of tables; a run needs none
        known = {"catalog": "main", "schema": "replication"} if kind == "tables" else {}
        with object_store(directory) as store, in_environment(ENVIRONMENT):
            yield lambda name, folder: _in_store(store.lake(name) | known, folder / "state")


def _in_store(lake: Mapping[str, object], state: Path) -> JobLake:
    return JobLake({**lake, "checkpoints": str(state)}, state, stage=None)


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
