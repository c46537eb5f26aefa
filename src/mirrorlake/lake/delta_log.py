"""Follows a Delta table without Spark: its commits as JSON, its snapshot by delta-rs.

A poll of an idle table costs one failed opening of a file. This uses only what the Delta protocol
says: commit N is `_delta_log/<N, 20 digits>.json`, one action a line; an `add` names a file of the
table, a `remove` one that no longer is (https://github.com/delta-io/delta/blob/master/PROTOCOL.md).
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.table import ProtocolVersions

from mirrorlake.lake.arrow_values import table_of
from mirrorlake.lake.log_repair import checkpoints_of, hinted
from mirrorlake.lake.place import Place
from mirrorlake.threads import in_thread, side_by_side

#: Table features with which the files of a snapshot are not the whole table.
BARRED_FEATURES = frozenset({"deletionVectors", "columnMapping"})
#: Table features that demand nothing of a commit that moves the rows of plain files into others.
#: What any other feature demands is not known here: rows may have ids, commits times of their own,
#: files columns of other names.
PLAIN_FEATURES = frozenset(
    """
    appendOnly invariants checkConstraints changeDataFeed generatedColumns identityColumns
    allowColumnDefaults timestampNtz vacuumProtocolCheck
    """.split()
)
#: The name of a column in files; and the prefix of properties that check written rows.
_IN_FILES, _CHECKS = "delta.columnMapping.physicalName", "delta.constraints."


def features_of(protocol: ProtocolVersions) -> set[str]:
    """The features of Delta's protocol that a table uses, or may use."""
    named = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return named | ({"columnMapping"} if protocol.min_reader_version == 2 else set())


def rewrite_barrier(table: DeltaTable, known: Set[str] = PLAIN_FEATURES) -> str | None:
    """Why a commit of our own must not put the rows of a table's files into other files; None if it
    may. `known` are the features that demand nothing of it."""
    if unknown := features_of(table.protocol()) - known:
        return f"it has {', '.join(sorted(unknown))}"
    return "it is partitioned" if table.metadata().partition_columns else None


def append_barrier(table: DeltaTable) -> str | None:
    """Why a commit of our own must not add files to a table; None if it may."""
    fields = table.schema().fields
    if any(field.metadata.get(_IN_FILES, field.name) != field.name for field in fields):
        return "it has a column that its files have under another name"
    if any(name.startswith(_CHECKS) for name in table.metadata().configuration):
        return "it has constraints, which only other writers check"
    return rewrite_barrier(table, PLAIN_FEATURES | BARRED_FEATURES | {"v2Checkpoint"})


@dataclass(frozen=True)
class Commit:
    """What a commit did to the table's files: the statistics (JSON text, may be empty) of each
    added file, and the paths of the removed ones. Paths are as in the log, unescaped.
    `changes_table`: it changed more than files. `deletes`: it removed rows that it did not add
    again. `applications` are the application versions that it records."""

    added: Mapping[str, str]
    removed: tuple[str, ...]
    changes_table: bool = False
    deletes: bool = False
    applications: Mapping[str, int] = field(default_factory=dict)


def files_of(table: DeltaTable) -> dict[str, int]:
    """The bytes of each file of a snapshot, by its path below the table's folder."""
    files = table_of(table.get_add_actions())
    return dict(zip(files["path"].to_pylist(), files["size_bytes"].to_pylist(), strict=True))


def version_and_files(table: DeltaTable) -> tuple[int, pa.Table]:
    """A snapshot's version, and its files: path, modification_time, and num_records, min.* and
    max.* where known."""
    return table.version(), table_of(table.get_add_actions(flatten=True))


def layout_of(table: DeltaTable) -> pa.Schema:
    """The columns of a table as it is, all nullable: a newer version may have added some."""
    return pa.schema([(field.name, field.type) for field in pa.schema(table.schema().to_arrow())])


def versions_in(names: Iterable[str]) -> list[int]:
    """The versions of the commits among the names of a log's files, rising."""
    parts = (name.partition(".") for name in names)
    return sorted(int(stem) for stem, _, kind in parts if kind == "json" and stem.isdigit())


class DeltaLog:
    """The log of one table. With `mends`, a damaged checkpoint is written again, since the log is
    ours.

    Attributes:
        table: where the table lies.
        folder: where its log lies.
    """

    def __init__(self, table: Place, mends: bool = True) -> None:
        self.table = table
        self._mends = mends
        self.folder = table / "_delta_log"

    def file_of(self, version: int) -> Place:
        """The place of a commit."""
        return self.folder / f"{version:020d}.json"

    def checkpoint_of(self, version: int) -> Place:
        """The place of a version's checkpoint, if it has one."""
        return self.folder / f"{version:020d}.checkpoint.parquet"

    def names(self) -> list[str]:
        """The names of all files of the log. Raises OSError."""
        return self.folder.names()

    def commit(self, version: int) -> Commit | None:
        """A commit; None before it exists. Raises FileNotFoundError once the log has lost it."""
        text = self.text(version)
        if text is None:
            if self.newest_checkpoint() >= version:  # made from that commit
                raise FileNotFoundError(f"commit {version} of {self.table} is gone")
            return None
        added, removed, changes, deletes = {}, [], False, False
        applications: dict[str, int] = {}
        for line in text.split("\n"):  # of JSON: a value may have other ends of lines in it
            action = json.loads(line) if line else {}
            if "add" in action:
                added[unquote(action["add"]["path"])] = action["add"].get("stats") or ""
            elif "remove" in action:
                removed.append(unquote(action["remove"]["path"]))
                deletes = deletes or action["remove"].get("dataChange", True)
            elif "txn" in action:
                applications[action["txn"]["appId"]] = int(action["txn"]["version"])
            changes = changes or "metaData" in action or "protocol" in action
        return Commit(added, tuple(removed), changes, deletes, applications)

    def statistics(self, version: int) -> Iterator[tuple[str, str]]:
        """The paths and statistics (JSON text) of files, as their commits have them, with parts
        that delta-rs does not know: from the newest checkpoint, and from the commits behind it up
        to a version. The checkpoint's files without statistics are left out. Raises OSError."""
        newest = self.newest_checkpoint()
        with suppress(FileNotFoundError):  # a checkpoint of another form; a log that was cleaned up
            if newest >= 0:
                yield from self._of_checkpoint(newest)
            # in a store each answer takes time
            for commit in side_by_side(self.commit, range(newest + 1, version + 1)):
                yield from () if commit is None else commit.added.items()

    def _of_checkpoint(self, version: int) -> Iterator[tuple[str, str]]:
        with self.checkpoint_of(version).open_parquet() as file:
            for batch in file.iter_batches(columns=["add.path", "add.stats"]):
                for add in batch.column("add").to_pylist():
                    if add is not None and add.get("stats"):
                        yield unquote(add["path"]), add["stats"]

    def sync(self, behind: int, version: int) -> None:
        """Make the commits behind a version, up to another one, and the files that they name
        outlast a loss of power: delta-rs leaves both to the system. Raises OSError."""
        if self.folder.in_store:  # a store answers once it has them for good
            return
        for number in range(behind + 1, version + 1):
            with suppress(FileNotFoundError):  # a checkpoint has taken its place
                commit = self.commit(number)
                for path in () if commit is None else commit.added:
                    (self.table / path).sync()
                self.file_of(number).sync()
        self.folder.sync()

    def text(self, version: int) -> str | None:
        """The text of a commit; None where it does not exist, or no longer does. Raises OSError."""
        try:
            return self.file_of(version).read().decode()
        except FileNotFoundError:
            return None

    def versions(self, behind: int = -1) -> list[int]:
        """The versions of the commits behind one, rising. Raises OSError."""
        return versions_in(self.folder.names(f"{behind + 1:020d}"))

    def newest(self) -> int:
        """The newest version; -1 for an empty log. Only commits behind the newest checkpoint are
        looked at, however long the log is. Raises OSError."""
        version = self.newest_checkpoint()
        if self.folder.in_store:
            return max(self.versions(version), default=version)
        while self.file_of(version + 1).mark() is not None:
            version += 1
        return version

    def is_newest(self, version: int, mark: Hashable | None) -> bool | None:
        """Whether a version is the newest one; None where its commit is gone, or has another mark,
        since the table was made anew in this place."""
        behind = self.file_of(version + 1).mark
        # In a store both are asked for at once.
        asked = in_thread("commit behind", behind).result if self.folder.in_store else behind
        known = self.file_of(version).mark()
        return asked() is None if known is not None and known == mark else None

    def newest_checkpoint(self) -> int:
        """The version of the log's newest checkpoint; -1 without one. The hint that names it may be
        damaged, or, in a folder, where a look costs nothing, missing."""
        try:
            hint, damaged = hinted(self.folder), False
        except ValueError:
            hint, damaged = None, True
        if hint is not None:
            return hint.version
        if damaged or not self.folder.in_store:
            return max(checkpoints_of(self.names()), default=-1)
        return -1

    def snapshot(self) -> tuple[int, pa.Table]:
        """The newest version, and its files, see `version_and_files`."""
        return version_and_files(self.opened())

    def opened(self, without_files: bool = False) -> DeltaTable:
        """The table's newest version; `without_files` if unneeded. Raises DeltaError, OSError."""
        return self.table.delta(self._mends, without_files=without_files)

    def follow(self, delta: DeltaTable) -> None:
        """Bring a table that was opened here to the newest version. Raises DeltaError, OSError."""
        delta.update_incremental()

    def mark_of(self, version: int) -> Hashable | None:
        """The mark of a commit, see `Place.mark`."""
        return self.file_of(version).mark()
