"""The files of a lake in an object store, as DuckDB opens them: by Python instead of an extension
of its own, which it would download.

Files of a table never change: a small one is read at once, and kept for who opens it again.
"""

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from mirrorlake.extras import needs
from mirrorlake.lake.place import Place
from mirrorlake.lake.store_place import IN_MEMORY, StorePlace

with needs("stores"):
    from fsspec import AbstractFileSystem

#: So many bytes of files that are read at once are kept: DuckDB opens a file several times.
_KEPT = 64 << 20
_BEGAN = datetime(2020, 1, 1, tzinfo=timezone.utc)


class StoreFiles(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Files by their paths below the lake's place. For reading.

    Attributes:
        sizes: bytes of files, as the log of their table has them.
    """

    protocol = "lake"
    cachable = False  # each connection has its own

    def __init__(self, place: Place) -> None:
        super().__init__()
        assert isinstance(place, StorePlace)
        self._place = place
        self._small: dict[str, bytes] = {}
        self.sizes: dict[str, int] = {}

    def glob(self, path: str, **_: Any) -> list[str]:
        """The file of a name; DuckDB's patterns were escaped (`duck.DuckLake`)."""
        return [path]

    def open(self, path: str, *_: Any, **__: Any) -> Any:
        """Open a file. Raises FileNotFoundError, OSError."""
        file = self._place / self._strip_protocol(path)
        if path not in self._small:
            size = self.sizes[path]
            if size > IN_MEMORY:
                return file.open(size)
            while self._small and sum(map(len, self._small.values())) + size > _KEPT:
                self._small.pop(next(iter(self._small)), None)
            self._small[path] = file.read()
        return pa.BufferReader(self._small[path])

    def size(self, path: str) -> int:
        """How many bytes a file has."""
        return self.sizes[path]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What a file is."""
        return {"name": path, "size": self.sizes[path], "type": "file"}

    def modified(self, path: str) -> datetime:
        """Never."""
        return _BEGAN
