"""Commits that are written here: files of a table replaced by others, with their rows in order; and
appends (`lake/followed_log.py`).

delta-rs has no commit that names the files to remove, and rewrites rows in its own order; a flow
that reads offsets out of order has to sort. The commit is Delta's: `add`, `remove` and, for the
change feed, `cdc` (https://github.com/delta-io/delta/blob/master/PROTOCOL.md). It appears whole or
not at all. A file written before a process died is in no version: `maintain` deletes it.
"""

import json
import time
import uuid
from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from mirrorlake.lake.delta_log import DeltaLog, files_of, layout_of
from mirrorlake.lake.parquet import KEYS, REPEATED, ranges_of_rows, stated_ranges
from mirrorlake.lake.place import Place

_ROW_GROUP = 100_000


class NewFile:
    """A Parquet file that is being written into a folder, with rows in the order to read them in.

    Attributes:
        place: where it lies.
        rows: its number of rows.
        size: its bytes, once it is closed.
    """

    def __init__(self, folder: Place, layout: pa.Schema, keys: Collection[str] = ()) -> None:
        """`keys` are the columns that the commit gets statistics of."""
        self.place = folder / f"part-00000-{uuid.uuid4()}-c000.zstd.parquet"
        self.rows = self.size = 0
        self._layout = layout
        self._keys = {name: [None, None, 0] for name in keys}
        self._of_stage = set(KEYS) <= self._keys.keys()
        self._ranges: dict[tuple[object, ...], list[int]] = {}
        # As in landed files: a dictionary of values would hide their size in memory.
        repeated = [name for name in REPEATED if name in layout.names]
        self._file = self.place.writer()
        self._writer = pq.ParquetWriter(
            self._file.sink,
            layout,
            compression="zstd",
            compression_level=1,
            use_dictionary=repeated if "value" in layout.names else True,
        )

    def write(self, rows: pa.Table) -> None:
        """Write rows of the layout behind the earlier ones."""
        if not rows.num_rows:
            return
        self._writer.write_table(rows, row_group_size=_ROW_GROUP)
        self.rows += rows.num_rows
        for name, known in self._keys.items():
            sides = pc.min_max(rows[name]).as_py()
            for at, (side, better) in enumerate((("min", min), ("max", max))):
                values = [each for each in (known[at], sides[side]) if each is not None]
                known[at] = better(values, default=None)
            known[2] += rows[name].null_count
        for *place, first, last, count in ranges_of_rows(rows) if self._of_stage else ():
            bounds = self._ranges.setdefault(tuple(place), [first, last, 0])
            bounds[:] = min(bounds[0], first), max(bounds[1], last), bounds[2] + count

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()
        self.size = self._file.close()

    def discard(self) -> None:
        """Delete the file: no commit names it."""
        self._writer.close()
        self._file.discard()

    @property
    def statistics(self) -> str:
        """The statistics of its rows for the commit, as JSON text."""
        lowest, highest = (
            {name: known[at] for name, known in self._keys.items() if known[at] is not None}
            for at in (0, 1)
        )
        nulls = {name: known[2] for name, known in self._keys.items()}
        statistics = {"numRecords": self.rows, "minValues": lowest, "maxValues": highest}
        ranges = stated_ranges([[*place, *bounds] for place, bounds in self._ranges.items()])
        return json.dumps({**statistics, "nullCount": nulls, **ranges})


def keys_of(table: DeltaTable) -> list[str]:
    """The columns with statistics in commits: by the properties, else all integers and text."""
    named = table.metadata().configuration.get("delta.dataSkippingStatsColumns")
    layout = layout_of(table)
    return [
        field.name
        for field in layout
        if (named is None or field.name in named.split(","))
        and (pa.types.is_integer(field.type) or pa.types.is_string(field.type))
    ]


def replace_files(
    log: DeltaLog,
    version: int,
    removed: Mapping[str, int],
    added: Sequence[NewFile],
    *,
    gone: Sequence[NewFile] = (),
    operation: str = "OPTIMIZE",
) -> int | None:
    """Replace files (path below the table's folder: bytes) by closed ones, in the next commit
    behind a version and all that came meanwhile and left these files alone.

    `gone` are the deleted rows, for the change feed (none by OPTIMIZE). Returns the version; None
    where another commit removed one of them, or changed the table: then it deletes what it wrote.
    """
    changed = {"dataChange": operation != "OPTIMIZE"}
    actions = [added_by(log, file, **changed) for file in added]
    actions += removed_by(removed, **changed)
    actions += [{"cdc": {**_placed(log, file), "dataChange": False}} for file in gone]
    committed = _replaced(log, version, actions, operation, set(removed))
    if committed is None:
        for file in (*added, *gone):
            file.discard()
    return committed


def added_by(log: DeltaLog, file: NewFile, **more: object) -> dict[str, Any]:
    """The action that adds a closed file to the table."""
    now = time.time_ns() // 1_000_000
    add = {**_placed(log, file), "modificationTime": now, "stats": file.statistics}
    return {"add": {**add, **more}}


def removed_by(files: Mapping[str, int], **more: object) -> list[dict[str, Any]]:
    """The actions that remove files (path below the table's folder: bytes) from the table."""
    removed = {"deletionTimestamp": time.time_ns() // 1_000_000, **more}
    removed |= {"extendedFileMetadata": True, "partitionValues": {}}
    return [{"remove": {"path": path, **removed, "size": size}} for path, size in files.items()]


def commit_at(
    log: DeltaLog, version: int, actions: Sequence[dict[str, Any]], operation: str
) -> bool:
    """Make the commit of a version, behind all others; False where another has that version.

    Raises FileNotFoundError where the commit would not belong to the table: the log has a newer
    checkpoint, without the commits before; or, in a folder, where a look costs nothing, the commit
    before it is gone. Raises OSError.
    """
    is_alone = not log.folder.in_store and log.file_of(version - 1).mark() is None
    if is_alone and log.newest_checkpoint() < version - 1:
        raise FileNotFoundError(f"commit {version} of {log.table} has none in front of it")
    info = {"timestamp": time.time_ns() // 1_000_000, "operation": operation}
    info |= {"operationParameters": {}, "isBlindAppend": operation == "WRITE"}
    # no other commit has this text, so a commit whose answer was lost is recognized
    info |= {"engineInfo": "mirrorlake", "txnId": str(uuid.uuid4())}
    lines = [{"commitInfo": info}, *actions]
    text = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    try:
        log.file_of(version).create(text)
    except FileExistsError:
        return False
    # Commits are deleted only below a checkpoint, which the hint names first.
    if log.newest_checkpoint() > version and not _is_in(log, version, actions):
        raise FileNotFoundError(f"commit {version} of {log.table} lies behind its log")
    return True


def _replaced(
    log: DeltaLog,
    version: int,
    actions: Sequence[dict[str, Any]],
    operation: str,
    removed: Set[str],
) -> int | None:
    """Commit actions behind a version, and behind all commits that came meanwhile and left alone
    the `removed` files and the table itself; None where one did not, or its commit is gone."""
    try:
        while not commit_at(log, version := version + 1, actions, operation):
            came = log.commit(version)
            if came is None or came.changes_table or not removed.isdisjoint(came.removed):
                return None
    except FileNotFoundError:
        return None
    return version


def _is_in(log: DeltaLog, version: int, actions: Sequence[dict[str, Any]]) -> bool:
    """Whether the commit of a version, with these actions, belongs to the table."""
    table = log.opened()
    files = files_of(table)
    added = {unquote(action["add"]["path"]) for action in actions if "add" in action}
    lacking = added - files.keys()
    # A later commit may have taken it away, as one that joins files does: no other has its name.
    if lacking and not lacking <= _removed_behind(log, version, table.version()):
        return False
    for action in actions:
        if "txn" in action:
            known = table.transaction_version(action["txn"]["appId"])
            if known is None or known < action["txn"]["version"]:
                return False
        if "remove" in action and unquote(action["remove"]["path"]) in files:
            return False
    return True


def _removed_behind(log: DeltaLog, version: int, newest: int) -> set[str]:
    """The files that the commits behind a version removed, as far as these are there."""
    removed = set[str]()
    with suppress(FileNotFoundError):  # older ones are gone, too
        for later in range(newest, version, -1):
            commit = log.commit(later)
            removed.update(() if commit is None else commit.removed)
    return removed


def _placed(log: DeltaLog, file: NewFile) -> dict[str, Any]:
    return {"path": log.table.below(str(file.place)), "partitionValues": {}, "size": file.size}
