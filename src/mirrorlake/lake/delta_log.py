"""Following a Delta table in a local directory without Spark: its commits as JSON, its snapshot by
delta-rs.

A poll of an idle table costs one failed `open`. Only what the Delta protocol says is used: commit N
is `_delta_log/<N, 20 digits>.json`, one action a line; an `add` names a file of the table, a
`remove` one that is not any more (https://github.com/delta-io/delta/blob/master/PROTOCOL.md).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.table import ProtocolVersions

from mirrorlake.lake.arrow_values import table_of

#: Table features without which the files of a snapshot are the table.
BARRED_FEATURES = frozenset({"deletionVectors", "columnMapping"})
#: Table features that ask nothing of a commit which puts the rows of plain files into others. Of
#: any other one, what it asks is not known here: rows may have ids, commits times of their own,
#: files columns of other names.
PLAIN_FEATURES = frozenset(
    """
    appendOnly invariants checkConstraints changeDataFeed generatedColumns identityColumns
    allowColumnDefaults timestampNtz vacuumProtocolCheck
    """.split()
)


def features_of(protocol: ProtocolVersions) -> set[str]:
    """The features of Delta's protocol that a table uses, or may use."""
    named = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return named | ({"columnMapping"} if protocol.min_reader_version == 2 else set())


def why_not_by_hand(table: DeltaTable) -> str | None:
    """Why the rows of a table's files must not be put into other files by a commit of our own; None
    if they may be."""
    unknown = features_of(table.protocol()) - PLAIN_FEATURES
    if unknown:
        return f"it has {', '.join(sorted(unknown))}"
    return "it is partitioned" if table.metadata().partition_columns else None


@dataclass(frozen=True)
class Commit:
    """What a commit did to the table's files: statistics (JSON text, may be empty) of each that it
    added, and the paths of those that it removed. Paths are as the log has them, unescaped.
    `changes_table`: it is about more than files."""

    added: Mapping[str, str]
    removed: tuple[str, ...]
    changes_table: bool = False


def files_of(table: DeltaTable) -> list[str]:
    """The paths of a snapshot's files, below the table's folder, as they are there."""
    paths: list[str] = table_of(table.get_add_actions())["path"].to_pylist()
    return paths


def layout_of(table: DeltaTable) -> pa.Schema:
    """The columns of a table as it is, which may all be null: a newer version may have added
    some."""
    return pa.schema([(field.name, field.type) for field in pa.schema(table.schema().to_arrow())])


class DeltaLog:
    """The log of one table."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.folder = table / "_delta_log"

    def commit(self, version: int) -> Commit | None:
        """A commit; None while there is none of this version. Raises FileNotFoundError when it is
        gone again, since the log is kept for some days only."""
        try:
            text = self._file(version).read_text(encoding="utf-8")
        except FileNotFoundError:
            if self._newest_log_checkpoint() > version:
                raise
            return None
        added, removed, changes = {}, [], False
        for line in text.splitlines():
            action = json.loads(line) if line else {}
            if "add" in action:
                added[unquote(action["add"]["path"])] = action["add"].get("stats") or ""
            elif "remove" in action:
                removed.append(unquote(action["remove"]["path"]))
            changes = changes or "metaData" in action or "protocol" in action
        return Commit(added, tuple(removed), changes)

    def newest_mark(self, version: int) -> tuple[int, int] | None:
        """What tells the commit of a version from that of a table made anew in this place; None
        where this version is not the newest one, or its commit is not kept any more."""
        try:
            found = self._file(version).stat()
        except FileNotFoundError:
            return None
        return None if self._file(version + 1).exists() else (found.st_ino, found.st_mtime_ns)

    def _file(self, version: int) -> Path:
        return self.folder / f"{version:020d}.json"

    def _newest_log_checkpoint(self) -> int:
        """The version of the newest checkpoint of the log; -1 without one."""
        try:
            text = (self.folder / "_last_checkpoint").read_text(encoding="utf-8")
            return int(json.loads(text)["version"])
        except FileNotFoundError:
            return -1

    def snapshot(self) -> tuple[int, pa.Table]:
        """The newest version, and its files: path, modification_time, and num_records, min.* and
        max.* where known."""
        table = self.opened()
        return table.version(), table_of(table.get_add_actions(flatten=True))

    def opened(self) -> DeltaTable:
        """The table as of its newest version."""
        return DeltaTable(str(self.table))
