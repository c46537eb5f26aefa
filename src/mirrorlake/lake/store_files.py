"""The files of a lake in an object store, as DuckDB opens them: by Python instead of an extension
of DuckDB's, which it would download.

Files of a table never change: a small one is read at once, and kept for later openings.
"""

import threading
import time
from datetime import datetime, timezone
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from mirrorlake.extras import needs
from mirrorlake.lake.arrow_values import int64s, table_of
from mirrorlake.lake.delta_log import layout_of
from mirrorlake.lake.place import Place
from mirrorlake.lake.remote_place import IN_MEMORY, RemotePlace
from mirrorlake.threads import side_by_side

with needs("stores"):
    from fsspec import AbstractFileSystem

#: How many bytes of files that were read at once are kept: DuckDB opens a file several times.
_KEPT = 64 << 20
#: How many small files of a table are read side by side: DuckDB itself waits for one a thread.
_TOGETHER = 16
#: A file is old if each of its rows has a `batch_id`, a time in ms, further back than this.
_YOUNG_MS = 25 * 3_600_000
_BEGAN = datetime(2020, 1, 1, tzinfo=timezone.utc)


class StoreFiles(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Files by their paths below the lake's place. For reading.

    Attributes:
        sizes: bytes of files, as the log of their table has them.
        failure: the error of the newest file that could not be read; DuckDB makes a page of it.
    """

    protocol = "lake"
    cachable = False  # each connection has its own

    def __init__(self, place: Place) -> None:
        super().__init__()
        assert isinstance(place, RemotePlace)
        self._place = place
        self._small: dict[str, bytes] = {}
        self._reading = threading.Lock()
        self._next: dict[str, str] = {}  # the young file of a table that is read behind each
        self.sizes: dict[str, int] = {}
        self.failure: OSError | None = None

    def rows(
        self,
        connection: duckdb.DuckDBPyConnection,
        table: DeltaTable,
        folder: str,
        view: str,
        numbered: bool,
    ) -> duckdb.DuckDBPyRelation:
        """The rows of a table, whose file names begin with `folder`, for a view. Columns and counts
        come from the log, so that no file is opened before it is read, and no old one for a query
        on the last day. With `numbered`, rows have their file's name and their row number. A view's
        files stay in variables of its name."""
        empty = connection.from_arrow(layout_of(table).empty_table())
        columns = zip(map(_quoted, empty.columns), map(_quoted, map(str, empty.types)), strict=True)
        schema = (
            f"{name}: {{name: {name}, type: {kind}, default_value: NULL}}" for name, kind in columns
        )
        options = [f"schema = MAP {{{', '.join(schema)}}}", "hive_partitioning = false"]
        options += [f"filename = {numbered}", f"file_row_number = {numbered}"]
        files = table_of(table.get_add_actions(flatten=True))
        began = time.time_ns() // 1_000_000 - _YOUNG_MS
        old, young = _by_age(files, began)
        parts = []
        for age, numbers, condition in (
            ("old", old, f"WHERE batch_id < {began}"),
            ("young", young, ""),
        ):
            part, variable = files.take(int64s(numbers)), f"{view} {age}"
            names = [f"{folder}{path}" for path in part["path"].to_pylist()]
            self.sizes.update(zip(names, part["size_bytes"].to_pylist(), strict=True))
            if age == "young":
                self._next.update(zip(names, [*names[1:], ""], strict=False))
            connection.execute(f'SET VARIABLE "{variable}" = $names', {"names": names})
            count = f"explicit_cardinality = {pc.sum(part['num_records']).as_py() or 0}"
            read = ", ".join([f"getvariable('{variable}')", *options, count])
            parts += [f"SELECT * FROM read_parquet({read}) {condition}"] if names else []
        return connection.sql(" UNION ALL ".join(parts))

    def glob(self, path: str, **_: Any) -> list[str]:
        """The file of that name: DuckDB's patterns were escaped (`duck.DuckLake`)."""
        return [path]

    def open(self, path: str, *_: Any, **__: Any) -> Any:
        """Open a file. Raises FileNotFoundError, OSError."""
        try:
            return self._opened(path)
        except OSError as error:
            self._note(error)
            raise

    def _note(self, error: OSError) -> None:
        self.failure = error

    def _opened(self, path: str) -> Any:
        if (size := self.sizes[path]) > IN_MEMORY:
            return self._file(path).open(size, self._note)
        with self._reading:
            if path not in self._small:
                self._read(path)
            return pa.BufferReader(self._small[path])

    def _file(self, path: str) -> RemotePlace:
        return self._place / str(self._strip_protocol(path))

    def _read(self, path: str) -> None:
        """Read a file, and the small ones behind it that were not read yet."""
        wanted, size = [path], self.sizes[path]
        while len(wanted) < _TOGETHER and (path := self._next.get(path, "")):
            if path not in self._small:
                size += self.sizes[path]
                if size > IN_MEMORY:
                    break
                wanted.append(path)
        while self._small and sum(map(len, self._small.values())) + size > _KEPT:
            self._small.pop(next(iter(self._small)))
        contents = side_by_side(lambda path: self._file(path).read(), wanted, _TOGETHER)
        self._small.update(zip(wanted, contents, strict=True))

    def size(self, path: str) -> int:
        """The bytes of a file."""
        return self.sizes[path]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """The description of a file, as fsspec has it."""
        return {"name": path, "size": self.sizes[path], "type": "file"}

    def modified(self, path: str) -> datetime:
        """A constant: files never change."""
        return _BEGAN


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _by_age(files: pa.Table, began: int) -> tuple[list[int], list[int]]:
    """The numbers of the files whose rows are all of batches before a time, by the log's
    statistics; and of the others."""
    if not {"max.batch_id", "null_count.batch_id"} <= set(files.column_names):
        return [], list(range(files.num_rows))
    newest, nulls = (files[f"{what}.batch_id"].to_pylist() for what in ("max", "null_count"))
    old, young = list[int](), list[int]()
    for number, (last, lacking) in enumerate(zip(newest, nulls, strict=True)):
        is_old = last is not None and last < began and lacking == 0
        (old if is_old else young).append(number)
    return old, young
