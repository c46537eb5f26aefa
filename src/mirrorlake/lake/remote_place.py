"""Files of a lake behind a URL: in an object store (`lake/store_place.py`), or in HDFS
(`lake/hdfs_place.py`). Each answer takes time there; a file is there whole or not at all."""

import io
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from mirrorlake.lake.place import PARQUET, FileWriter, Place
from mirrorlake.lake.renewed_options import RenewedOptions

#: How much of a file is in memory before it is put, and up to which a file is read at once, bytes.
IN_MEMORY = 8 << 20


@dataclass(frozen=True)
class RemotePlace(Place):
    """A file or folder by its URL, with the options by which it is reached."""

    url: str
    given: Mapping[str, str] | RenewedOptions = field(default_factory=dict, repr=False)

    @property
    def options(self) -> Mapping[str, str]:
        return self.given.now() if isinstance(self.given, RenewedOptions) else self.given

    @property
    def in_store(self) -> bool:
        return True

    def __truediv__(self, path: str) -> "RemotePlace":
        return type(self)(f"{self.url.rstrip('/')}/{path}", self.given)

    def __str__(self) -> str:
        return self.url

    def create(self, content: bytes) -> None:
        """See `Place.create`. Where the answer to a put was lost, to this process or to a retry of
        its client, the file is read: if it has this content, this put made it."""
        for last in (False, True):
            try:
                self._put_new(content)
                return
            except FileExistsError:
                if not self._holds(content):
                    raise
                return
            except OSError:
                if last:
                    raise

    def sync(self) -> None:
        """See `Place.sync`: a store answers a put once it has it for good."""

    def _holds(self, content: bytes) -> bool:
        try:
            return self.read() == content
        except FileNotFoundError:
            return False

    def open_parquet(self, **how: Any) -> pq.ParquetFile:
        return pq.ParquetFile(self.open(), pre_buffer=True, **PARQUET, **how)

    def open(
        self, size: int | None = None, failed: Callable[[OSError], object] = lambda _error: None
    ) -> Any:
        """Open the file to read parts of it; a small one is read at once, by one request. `failed`
        gets the errors of later reads."""
        found = self._content_or_size() if size is None else size
        if isinstance(found, int) and found <= IN_MEMORY:
            found = self.read()
        return _Parts(self, found, failed) if isinstance(found, int) else pa.BufferReader(found)

    def writer(self) -> "FileWriter":
        return _Put(self)

    @abstractmethod
    def _put_new(self, content: bytes) -> None:
        """Make the file, whole. Raises FileExistsError where there is one, OSError."""

    @abstractmethod
    def _content_or_size(self) -> bytes | int:
        """The content of a small file; the bytes of a larger one. Raises OSError."""

    @abstractmethod
    def read_part(self, first: int, end: int) -> bytes:
        """The bytes from `first` (inclusive) to `end` (exclusive). Raises OSError."""

    @abstractmethod
    def write(self, content: "bytes | IO[bytes]") -> None:
        """See `Place.write`."""


@lru_cache(maxsize=64)
def root_and_path(url: str) -> tuple[str, str]:
    """The URL of the bucket or cluster that a URL names, and the path below it."""
    scheme, _, rest = url.partition("://")
    root, _, path = rest.partition("/")
    return f"{scheme}://{root}", path


class _Parts(io.RawIOBase):
    """A file that is read in parts, each by a request."""

    def __init__(self, place: RemotePlace, size: int, failed: Callable[[OSError], object]) -> None:
        self._place = place
        self._size = size
        self._failed = failed
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, count: int | None = -1) -> bytes:
        end = self._size if count is None or count < 0 else min(self._size, self._at + count)
        try:
            part = self._place.read_part(self._at, end) if end > self._at else b""
        except OSError as error:
            self._failed(error)
            raise
        self._at += len(part)
        return part

    def readinto(self, buffer: Any) -> int:
        part = self.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


class _Put(FileWriter):
    """Gathers a file on this host, and puts it as a whole."""

    def __init__(self, place: RemotePlace) -> None:
        self._place = place
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - `close` closes it
        self.sink = self._file

    def close(self) -> int:
        size = self._file.tell()
        self._file.seek(0)
        with self._file:
            self._place.write(self._file)
        return size

    def discard(self) -> None:
        self._file.close()
        self._place.delete()
