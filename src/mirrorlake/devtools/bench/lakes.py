"""Where mirrorlake's lakes lie while it is measured: in folders, in an object store, or as the own
tables of a catalog."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from mirrorlake.devtools.local.metastore import Metastore, hive_metastore
from mirrorlake.devtools.local.object_store import ENVIRONMENT, ObjectStore, object_store


class LakeKind(str, Enum):
    """A kind of lake."""

    folder = "folder"
    s3 = "s3"
    catalog = "catalog"


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
def lakes_of(kind: LakeKind, directory: Path) -> Iterator[LakeOf]:
    """Start what lakes of a kind need, in a new folder, for the time of the block. Processes that
    are started meanwhile get by their environment what they need to reach it."""
    directory.mkdir()
    if kind is LakeKind.folder:
        yield in_folder
    elif kind is LakeKind.s3:
        with object_store(directory) as store, _in_environment(ENVIRONMENT):
            yield lambda name, folder: _in_store(store, name, folder / "state")
    else:
        with hive_metastore(directory) as metastore, _in_environment(metastore.environment):
            yield lambda name, folder: _in_catalog(metastore, name, folder / "state")


def _in_store(store: ObjectStore, name: str, state: Path) -> JobLake:
    return JobLake({**store.lake(name), "checkpoints": str(state)}, state, stage=None)


def _in_catalog(metastore: Metastore, name: str, state: Path) -> JobLake:
    lake = metastore.lake(name.replace("-", "_"), state)
    return JobLake(lake, state, f"{lake['catalog']}.{lake['schema']}.records")


@contextmanager
def _in_environment(settings: Mapping[str, str]) -> Iterator[None]:
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
