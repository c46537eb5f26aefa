"""Upkeep of a table in a folder's lake, without Spark, and with a few files' rows in memory.

DuckDB finds which rows a statement deletes, by file and row number, and puts on disk what it has no
room for. A file that loses all its rows is not opened. One that loses some is written again without
them, batch by batch, in the same order; so records stay in the order of offsets. A process that
dies on the way leaves whole commits, and files that no version names.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from mirrorlake.errors import LakeError
from mirrorlake.lake.arrow_values import table_of
from mirrorlake.lake.definitions import sql_text
from mirrorlake.lake.delta_log import DeltaLog, layout_of
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.duck_changes import DuckRemoval
from mirrorlake.lake.layout import in_layout
from mirrorlake.lake.own_commits import NewFile, keys_of, replace_files
from mirrorlake.lake.parquet import plain_bytes
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.reader import NONE, Frames, Reader
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.upkeep import Rewritten, TableSize
from mirrorlake.lake.young_files import ALL, YoungFiles

_ATTEMPTS = 10
#: DuckDB's limit of memory, and how much of a file is in memory at once, bytes and rows.
_MEMORY, _BATCH_BYTES, _BATCH_ROWS = "2GB", 64 << 20, 100_000
_STAGE = "records"
#: The folder of the change feed's files, and the column that only they have.
_FEED, _CHANGE = "_change_data", pa.field("_change_type", pa.string())


class FolderUpkeep:
    """See `upkeep.TableUpkeep`. Statements only replace rows: an empty table needs no work."""

    def __init__(self, lake: PathLake, table: str) -> None:
        self._lake = lake
        self._table = table
        self._log = DeltaLog(lake.root / table)

    @property
    def reader(self) -> Reader:
        return self._lake.now

    def size(self) -> TableSize:
        sizes = _Files(self._log, self._lake.tables.opened(self._table)).sizes.values()
        return TableSize(len(sizes), sum(sizes))

    def set_properties(self, properties: Mapping[str, str]) -> None:
        self._lake.tables.set_properties(self._table, properties)

    def rewrite(self, query: str, frames: Frames = NONE, **args: object) -> Rewritten:
        if not self.size().files:  # most tables of a small lake: no query is needed
            return Rewritten(0, 0)
        removed = 0
        for _ in range(_ATTEMPTS):
            with closing(DuckLake(self._lake.root, memory=_MEMORY, whole=True)) as duck:
                removal = DuckRemoval(duck, sql_text("queries", query), frames, args)
                attempt = _Attempt(self._log, duck.snapshot(self._table), removal)
            removed += attempt.removed
            if attempt.complete:
                return Rewritten(removed, attempt.added)
        raise LakeError(
            f"rows of table {self._table} of the lake at {self._lake.place} could not be deleted: "
            f"other processes changed the same files {_ATTEMPTS} times meanwhile; try again"
        )

    def compact(self) -> None:
        """See `TableUpkeep.compact`: the stage in the order of offsets."""
        if self._table != _STAGE:
            self._lake.tables.compact(self._table)
            return
        young = YoungFiles(self._lake.root, StageFiles(self._lake), ALL)
        while young.compact():
            pass
        table = self._log.opened()
        files = _Files(self._log, table)
        for path, size in files.sizes.items():
            if size >= ALL.small_file and ".snappy." in path:  # as landed: a copy is smaller
                copy = files.split(path, np.empty(0, np.int64))
                replace_files(self._log, table.version(), {path: size}, copy)

    def vacuum(self, hours: int) -> None:
        self._lake.tables.vacuum(self._table, hours)


class _Attempt:
    """One statement, on a table as of a version.

    Where the table has a change feed, files that lose all their rows go in one commit, from which
    their feed follows; each file that loses some goes in a commit of its own, which names the
    deleted rows. Otherwise, and where other rows come in their place, all is one commit.

    Attributes:
        removed, added: how many rows were deleted, and added.
        complete: whether all is done; False if other commits came in between.
    """

    def __init__(self, log: DeltaLog, table: DeltaTable | None, removal: DuckRemoval) -> None:
        assert table is not None  # opening a lake makes all tables
        self._files = _Files(log, table)
        self._removal = removal
        self._counts = removal.counts()
        feed = table.metadata().configuration.get("delta.enableChangeDataFeed") == "true"
        self._names_gone = feed and not removal.adds
        self._version = table.version()
        self.removed, self.added = 0, 0
        self.complete = all(map(self._replaced, self._steps()))

    def _steps(self) -> list[list[str]]:
        """The files that lose rows, grouped by commit."""
        parts = [path for path in sorted(self._counts) if self._loses_some(path)]
        whole = sorted(self._counts.keys() - set(parts))
        return [whole, *([path] for path in parts)] if self._names_gone else [[*whole, *parts]]

    def _loses_some(self, path: str) -> bool:
        return self._counts[path] < self._files.row_count(path)

    def _replaced(self, paths: Sequence[str]) -> bool:
        """Commit without the rows of some files; False where another commit came in between."""
        kept, gone, added = [], [], 0
        for path in filter(self._loses_some, paths):
            numbers = self._removal.rows(path)
            files = self._files.split(path, numbers, self._names_gone)
            kept.append(files[0])
            gone += files[1:]
        if self._removal.adds:
            kept.append(self._files.written(self._removal.added()))
            added = kept[-1].rows
        if not paths and not added:
            return True
        removed = {path: self._files.sizes[path] for path in paths}
        version = replace_files(
            self._files.log, self._version, removed, kept, gone=gone, operation="DELETE"
        )
        if version is None:
            return False
        self._version = version
        self.removed += sum(self._counts[path] for path in paths)
        self.added += added
        return True


class _Files:
    """The files of a version of a table, and new files with rows of theirs.

    Attributes:
        log: the table's log.
        sizes: bytes of each file, by its path below the table's folder.
    """

    def __init__(self, log: DeltaLog, table: DeltaTable) -> None:
        self.log = log
        files = table_of(table.get_add_actions(flatten=True))
        paths = files["path"].to_pylist()
        self.sizes: dict[str, int] = dict(zip(paths, files["size_bytes"].to_pylist(), strict=True))
        self._counts = dict(zip(paths, files["num_records"].to_pylist(), strict=True))
        self._layout, self._keys = layout_of(table), keys_of(table)

    def row_count(self, path: str) -> int:
        """How many rows a file has."""
        if self._counts[path] is None:  # its commit has no statistics
            with (self.log.table / path).open_parquet() as file:
                self._counts[path] = file.metadata.num_rows
        return int(self._counts[path])

    def split(self, path: str, numbers: np.ndarray, names_gone: bool = False) -> list[NewFile]:
        """A file without some rows, given by their rising numbers; with `names_gone`, also a file
        of those rows for the change feed."""
        source = (self.log.table / path).open_parquet()
        files = [NewFile(self.log.table, self._layout, self._keys)]
        if names_gone:
            files.append(NewFile(self.log.table / _FEED, self._layout.append(_CHANGE)))
        at = 0
        for batch in source.iter_batches(batch_size=_batch_rows(source.metadata)):
            rows = in_layout(pa.Table.from_batches([batch]), self._layout)
            goes = np.zeros(len(rows), bool)
            low, high = np.searchsorted(numbers, [at, at + len(rows)])
            goes[numbers[low:high] - at] = True
            files[0].write(rows.filter(_mask(~goes)))
            if names_gone:
                gone = rows.filter(_mask(goes))
                files[1].write(gone.append_column(_CHANGE, _deletes(len(gone))))
            at += len(rows)
        for file in files:
            file.close()
        return files

    def written(self, batches: Iterable[pa.RecordBatch]) -> NewFile:
        """A file of new rows."""
        file = NewFile(self.log.table, self._layout, self._keys)
        for batch in batches:
            file.write(in_layout(pa.Table.from_batches([batch]), self._layout))
        file.close()
        return file


def _batch_rows(metadata: pq.FileMetaData) -> int:
    """How many rows of a file are read at a time: as many as `_BATCH_BYTES` has room for."""
    size = max(1, plain_bytes(metadata))
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES * int(metadata.num_rows) // size))


def _mask(rows: np.ndarray) -> pa.BooleanArray:
    bits = np.packbits(rows, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(rows), [None, pa.py_buffer(bits)])


def _deletes(count: int) -> pa.StringArray:
    """The change type of deleted rows."""
    ends = np.arange(count + 1, dtype=np.int32) * len(b"delete")
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(b"delete" * count))
