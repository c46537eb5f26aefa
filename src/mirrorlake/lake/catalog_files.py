"""Where the files of a catalog's own tables lie, so that answers from them need no session.

A writing process asks the catalog, and notes the answer beside its checkpoints; a command without a
session reads the note. The note is checked and not trusted: each table has to be the one that was
noted, by the id in its log (`lake/catalog_reader.py`), since one made again is another.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from mirrorlake.lake.catalog_names import CatalogNames
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.folder import STORES
from mirrorlake.lake.place import Place, place_of

#: The mark of a catalog's own table in the catalog's description of it.
_MANAGED = re.compile(r"^Type: MANAGED\s*$", re.MULTILINE)
_LOCATION = re.compile(r"^Location: (.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class CatalogFiles:
    """The place, `root`, of the tables of `schema`, each in a folder of its name."""

    schema: str
    root: str

    @property
    def place(self) -> Place:
        """The place, with the credentials of this process."""
        return place_of(self.root)


@dataclass(frozen=True)
class NotedFiles:
    """A note: where the files were, and the id of each table in its log."""

    files: CatalogFiles
    ids: Mapping[str, str]


def files_by_catalog(names: CatalogNames) -> CatalogFiles | None:
    """Where a catalog says that the tables lie; None where they have no common place, or one that
    no process of ours can read. Raises LakeError where the catalog does not answer."""
    roots = {_root(table, names.described.get(table, "")) for table in TABLES}
    root = roots.pop() if len(roots) == 1 else None
    return None if root is None else CatalogFiles(names.schema, root)


def _root(table: str, described: str) -> str | None:
    location = _LOCATION.search(described)
    if location is None or not _MANAGED.search(described):
        return None
    root, _, name = location[1].rstrip("/").rpartition("/")
    return _readable(root) if name == table else None


def _readable(root: str) -> str | None:
    """A place as this process names it; None in a file system that it does not know."""
    scheme, colon, path = root.partition(":")
    if not colon:
        return root
    if scheme == "file":
        return "/" + path.lstrip("/")
    return root if scheme in STORES else None


def _note_of(checkpoints: Path) -> Place:
    return place_of(checkpoints / "tables.json")


def note_files(checkpoints: Path, noted: NotedFiles | None) -> None:
    """Note where files are, for commands without a session; None: not at hand. Raises OSError."""
    note = _note_of(checkpoints)
    if noted is None:
        note.delete()
    elif noted_files(checkpoints, noted.files.schema) != noted:
        note.write(json.dumps(asdict(noted)).encode())


def noted_files(checkpoints: Path, schema: str) -> NotedFiles | None:
    """What is noted of a schema; None where nothing is. Raises OSError."""
    try:
        document = json.loads(_note_of(checkpoints).read())
        ids = {table: str(document["ids"][table]) for table in document["ids"]}
        noted = NotedFiles(CatalogFiles(**document["files"]), ids)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None  # no process of this version has written the lake yet
    return noted if noted.files.schema == schema else None
