"""Where files of a lake lie: below a folder, or below the URL of an object store
(`lake/store_place.py`) or of HDFS (`lake/hdfs_place.py`). Only these modules know file systems; all
others name files by paths below a place."""

import errno
import mmap
import os
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path, PosixPath
from typing import IO, TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from mirrorlake.config.urls import is_url

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from mirrorlake.lake.renewed_options import RenewedOptions


#: How often a request is sent whose answer breaks off, and what the libraries call that: both retry
#: a request that got no answer at all, but take a broken answer for final.
_BROKEN_TRIES, _BROKEN = 4, "body error"
#: How Parquet files are read. Spark writes times as INT96 unless a setting says otherwise. In
#: nanoseconds, Arrow's default, such a time behind the year 2262 becomes another one.
PARQUET: Mapping[str, Any] = {"coerce_int96_timestamp_unit": "us"}

Answer = TypeVar("Answer")


def answered_whole(ask: Callable[[], Answer]) -> Answer:
    """Send a request that only reads, again if the answer breaks off. Raises the last error."""
    for _ in range(_BROKEN_TRIES - 1):
        try:
            return ask()
        except OSError as error:
            if _BROKEN not in str(error):
                raise
    return ask()


class Place(ABC):
    """A folder of files. `place / "name"` is what lies below it. It can be pickled for tasks."""

    @property
    def options(self) -> Mapping[str, str] | None:
        """How delta-rs reaches it now; None on a disk. May hold secrets, and is never shown. Raises
        NotLent, an OSError, where credentials are to be lent and none are."""
        return None

    @abstractmethod
    def __truediv__(self, path: str) -> "Place":
        """A file or folder below."""

    @abstractmethod
    def __str__(self) -> str:
        """The path or URL, as delta-rs and messages name it."""

    @property
    def in_store(self) -> bool:
        """Whether it is in an object store."""
        return False

    @property
    def name(self) -> str:
        """The last part of its path."""
        return str(self).rpartition("/")[2]

    def below(self, path: str) -> str:
        """The path below this place of the file at `path`."""
        return path[len(str(self)) + 1 :]

    def delta(self, mend: bool = True, **how: bool) -> "DeltaTable":
        """The Delta table that lies here, as of its newest version. With `mend`, a damaged or lost
        checkpoint of its log is written again; else the log is not ours. Raises DeltaError."""
        from deltalake import DeltaTable  # tasks have places too, and do without
        from deltalake.exceptions import DeltaError, TableNotFoundError

        from mirrorlake.lake.log_repair import mended

        options = None if self.options is None else dict(self.options)

        def opened() -> DeltaTable:
            return DeltaTable(str(self), storage_options=options, **how)

        try:
            return answered_whole(opened)
        except TableNotFoundError:
            raise
        except DeltaError as error:
            if not (mend and mended(self)):
                raise type(error)(f"{self}: {error}") from error  # it does not say which table
        return answered_whole(opened)

    def free_bytes(self) -> int | None:
        """How much room its disk has left; None where that is not known, as in a store."""
        return None

    @abstractmethod
    def names(self, behind: str = "") -> list[str]:
        """The names of the files and folders here; empty where there is no folder. `behind` leaves
        out names up to this one in text order, and, in a store, folders."""

    @abstractmethod
    def read(self) -> bytes:
        """The file's content. Raises FileNotFoundError, OSError."""

    def read_marked(self) -> tuple[bytes, Hashable | None]:
        """The file's content and its `mark`. Raises FileNotFoundError, OSError."""
        return self.read(), self.mark()

    @abstractmethod
    def mark(self) -> Hashable | None:
        """A value that tells the file from another in its place; None where there is no file."""

    @abstractmethod
    def create(self, content: bytes) -> None:
        """Make the file, whole. No other process writes this content, so a file is known as ours
        when the answer was lost. Raises FileExistsError where there is another file, OSError."""

    @abstractmethod
    def write(self, content: bytes) -> None:
        """Make the file, or replace the one that is there, whole. Raises OSError."""

    def renew(self, content: bytes, mark: Hashable | None) -> bool:
        """Replace the file, whole, if it still has the `mark` of `read_marked`; returns whether it
        had. In an object store nothing comes in between, elsewhere next to nothing. Raises OSError.
        """
        if self.mark() != mark:
            return False
        self.write(content)
        return True

    @abstractmethod
    def sync(self) -> None:
        """Make the file, or the names in the folder, outlast a loss of power. Files made here
        already do; this is for those that a library makes. Raises OSError."""

    @abstractmethod
    def delete(self) -> None:
        """Delete the file, if it is there. Raises OSError."""

    @abstractmethod
    def open_parquet(self, **how: Any) -> pq.ParquetFile:
        """Open the file to read it. Raises FileNotFoundError, OSError."""

    @abstractmethod
    def writer(self) -> "FileWriter":
        """Begin to write the file."""


class FileWriter(ABC):
    """A file that is being written; what was written to `sink` exists once it is closed."""

    sink: "str | IO[bytes]"

    @abstractmethod
    def close(self) -> int:
        """Finish the file, and return its size in bytes. Raises OSError."""

    @abstractmethod
    def discard(self) -> None:
        """Delete it, if it is there."""


class FolderPlace(PosixPath, Place):
    """A place on a disk of this host, which is also a path."""

    def __str__(self) -> str:
        return PosixPath.__str__(self)

    def free_bytes(self) -> int | None:
        return shutil.disk_usage(self).free if self.is_dir() else None

    def names(self, behind: str = "") -> list[str]:
        try:
            return [name for name in os.listdir(self) if name > behind]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self) -> bytes:
        return self.read_bytes()

    def mark(self) -> Hashable | None:
        try:
            stat = self.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return stat.st_ino, stat.st_mtime_ns

    def create(self, content: bytes) -> None:
        """See `Place.create`: by a hard link, which appears at once with its whole content and
        outlasts a loss of power: later commits count on it."""
        draft = self._drafted(content)
        try:
            os.link(draft, self)
        except FileExistsError:
            # NFS sends a link again whose answer was lost, and finds its own (link(2), BUGS)
            if not self.samefile(draft):
                raise
        finally:
            draft.unlink()
        sync_to_disk(self.parent)

    def write(self, content: bytes) -> None:
        self._drafted(content).replace(self)

    def _drafted(self, content: bytes) -> Path:
        """A temporary file beside this one, with the content."""
        self.parent.mkdir(parents=True, exist_ok=True)
        draft = self.with_name(f".{uuid.uuid4()}.tmp")
        draft.write_bytes(content)
        # Otherwise a host that loses its power may keep the name without the content: an empty
        # commit is none, and the commits behind it hide the hole.
        sync_to_disk(draft)
        return draft

    def sync(self) -> None:
        sync_to_disk(self)

    def delete(self) -> None:
        self.unlink(missing_ok=True)

    def open_parquet(self, **how: Any) -> pq.ParquetFile:
        # Python's mmap instead of Arrow's: for small reads of many files it takes half the CPU
        # time. It is closed with the last buffer that refers to it.
        with self.open("rb") as opened:
            mapped = pa.py_buffer(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
        return pq.ParquetFile(pa.BufferReader(mapped), **PARQUET, **how)

    def writer(self) -> "FileWriter":
        self.parent.mkdir(exist_ok=True)
        return _OnDisk(self)


class _OnDisk(FileWriter):
    def __init__(self, path: Path) -> None:
        self.sink = str(path)
        self._path = path

    def close(self) -> int:
        sync_to_disk(self._path)  # before a commit names it
        return self._path.stat().st_size

    def discard(self) -> None:
        self._path.unlink(missing_ok=True)


def sync_to_disk(path: Path) -> None:
    """Sync a file, or the names in a folder, to the disk, where the file system can: not all can
    for folders (fsync(2), EINVAL). Raises OSError."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(opened)


def place_of(
    path: str | Path | Place, options: "Mapping[str, str] | RenewedOptions | None" = None
) -> Place:
    """The place that a path or a URL names."""
    if isinstance(path, Place):
        return path
    text = str(path)
    if not is_url(text):
        return FolderPlace(text)
    if text.startswith("hdfs://"):
        from mirrorlake.lake.hdfs_place import HdfsPlace  # hdfs-native is an extra

        return HdfsPlace(text.rstrip("/"), options or {})
    from mirrorlake.lake.store_place import StorePlace  # obstore is an extra

    return StorePlace(text.rstrip("/"), options or {})
