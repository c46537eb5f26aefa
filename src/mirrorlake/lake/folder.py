"""A lake's folder: which one a topology file names, and which tables lie in it."""

import hashlib
import os
import re
from pathlib import Path

from mirrorlake.errors import LakeError


def folder_of(path: str, directory: Path) -> Path:
    """The folder that `lake.path` names, of a topology file in `directory`.

    Raises LakeError for a URL, which would become a folder of that name here.
    """
    if re.match(r"[A-Za-z][\w+.-]*:", path):
        raise LakeError(
            f"the lake cannot be at {path}: a path is a folder, which a mount of object storage "
            "may be; mount it, or use catalog and schema"
        )
    return (directory / path).resolve()


def check_characters(root: Path) -> None:
    """Raise LakeError for a folder that delta-rs cannot open, whatever is in it."""
    if refused := re.search(r"[\[\]]|%[0-9A-Fa-f]{2}", str(root)):
        raise LakeError(
            f"the lake cannot be at {root}: no folder of its path may have {refused[0]} in its "
            "name; choose another"
        )


def has_table(root: Path, table: str) -> bool:
    """Whether a lake's folder holds a table, with a commit: to name a place without one makes an
    empty table."""
    return any((root / table / "_delta_log").glob("*.json"))


def schema_of(root: Path) -> str:
    """The schema by which Spark sessions know the lake in a folder."""
    return f"lake_{hashlib.sha256(os.fsencode(root)).hexdigest()[:12]}"


def quoted(path: Path) -> str:
    """A path as it stands between single quotes in SQL."""
    return str(path).replace("\\", "\\\\").replace("'", "\\'")


def no_lake(root: Path) -> LakeError:
    """The error for a folder that holds no lake."""
    return LakeError(
        f"there is no lake in {root}; `mirrorlake demo` makes one in ./mirrorlake-demo/lake"
    )
