"""Where a lake lies outside of a catalog: the place in a topology file, and the tables there."""

import hashlib
import os
import re
from pathlib import Path

from mirrorlake.config.lake import Lake as Location
from mirrorlake.config.urls import is_url
from mirrorlake.errors import LakeError
from mirrorlake.kafka.secrets import resolved
from mirrorlake.lake.place import FolderPlace, Place, place_of

#: The file of a Delta log that names its newest checkpoint.
HINT = "_last_checkpoint"
#: The folder of leases, beside checkpoints.
LEASES = "leases"
#: Stores that commit as Delta demands: a put fails where the object already exists.
STORES = ("s3", "s3a", "abfs", "abfss", "az", "azure", "gs")


def lake_place(location: Location, directory: Path) -> Place:
    """The place that `lake.path` of a topology file in `directory` names, with the options of
    `lake.storage`, whose references are resolved here, and with credentials where these are lent.

    Raises LakeError for a file, or a URL that is no store's, TopologyError for a reference without
    a value.
    """
    path = location.path or ""
    scheme, colon, _ = path.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][\w+.-]*", scheme):
        folder = (directory / path).resolve()
        there = next(each for each in (folder, *folder.parents) if os.path.exists(each))
        if not os.path.isdir(there):
            raise LakeError(f"the lake cannot be at {folder}: {there} is no folder; choose another")
        return place_of(folder)
    known = (*STORES, "hdfs")
    if scheme not in known or not is_url(path):
        raise LakeError(
            f"the lake cannot be at {path}: a path is a folder, or a URL of "
            f"{', '.join(f'{one}://' for one in known)}; mount it, or use catalog and schema"
        )
    options = {name: resolved(value) for name, value in location.storage.items()}
    if location.credentials is None:
        return place_of(path, options)
    from mirrorlake.lake.unity_catalog import lent_options  # few files need it

    return place_of(path, lent_options(path.rstrip("/"), options))


def check_characters(root: Place) -> None:
    """Raise LakeError for a folder that delta-rs cannot open, whatever is in it."""
    if refused := re.search(r"[\[\]]|%[0-9A-Fa-f]{2}", str(root)):
        raise LakeError(
            f"the lake cannot be at {root}: no folder of its path may have {refused[0]} in its "
            "name; choose another"
        )


def has_table(root: Place, table: str) -> bool:
    """Whether a table with a commit lies in a lake's place: a name for a place without a commit
    would make an empty table. The log is listed only without a checkpoint and a first commit."""
    log = root / table / "_delta_log"
    known = any((log / name).mark() is not None for name in (f"{0:020d}.json", HINT))
    return known or any(name.endswith(".json") for name in log.names())


def leases_at(root: Place) -> Place:
    """The place of the leases of a lake: in the lake itself, also at a URL."""
    return root / "_checkpoints" / LEASES


def own_folder(root: Place) -> Path:
    """Where a process keeps its own files for a lake, such as checkpoints: in the lake's folder;
    for a lake at a URL, in a folder of the user's, since nothing resumes from them."""
    if isinstance(root, FolderPlace):
        return root / "_checkpoints"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "mirrorlake" / schema_of(root)


def schema_of(root: Place) -> str:
    """The schema by which Spark sessions know the lake at a place."""
    return f"lake_{hashlib.sha256(os.fsencode(str(root))).hexdigest()[:12]}"


def quoted(path: Place | str) -> str:
    """A path as it stands between single quotes in SQL."""
    return str(path).replace("\\", "\\\\").replace("'", "\\'")


def no_lake(root: Place) -> LakeError:
    """The error for a place that holds no lake."""
    return LakeError(
        f"there is no lake in {root}; `mirrorlake run` makes the one that lake.path of the "
        "topology file names, `mirrorlake demo` one in ./mirrorlake-demo/lake"
    )
