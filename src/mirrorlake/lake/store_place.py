"""Files of a lake in an object store, reached by obstore, whose options are those of delta-rs (both
are Rust's `object_store`): what a topology's `lake.storage` says holds for commits and for files
alike. Nothing is renamed or linked in a store: a file is there as a whole or not at all, and
`create` is its put-if-absent.
"""

import io
import re
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from mirrorlake.extras import needs
from mirrorlake.lake.place import Answer, FileWriter, Place, answered_whole
from mirrorlake.lake.renewed_options import RenewedOptions

with needs("stores"):
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError
    from obstore.store import from_url

#: Options that obstore takes apart from the others: those of its HTTP client, as `object_store`
#: names them (https://docs.rs/object_store, `ClientConfigKey`).
_OF_CLIENT = {
    *("allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only"),
    *("pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes"),
    *("proxy_url", "timeout", "user_agent"),
}
#: Options that only delta-rs has.
_OF_DELTA = re.compile(r"(aws_s3_|dynamo|max_retries|backoff|retry_timeout|mount_)")
#: What of a file is in memory before it is put, and up to which one is read at once, bytes.
IN_MEMORY = 8 << 20


@dataclass(frozen=True)
class StorePlace(Place):
    """In an object store: S3, Azure's, Google's, or one that speaks as they do."""

    url: str
    given: Mapping[str, str] | RenewedOptions = field(default_factory=dict, repr=False)

    @property
    def options(self) -> Mapping[str, str]:
        """See `Place.options`."""
        return self.given.now() if isinstance(self.given, RenewedOptions) else self.given

    @property
    def in_store(self) -> bool:
        """See `Place.in_store`."""
        return True

    def __truediv__(self, path: str) -> "StorePlace":
        return StorePlace(f"{self.url.rstrip('/')}/{path}", self.given)

    def __str__(self) -> str:
        return self.url

    @property
    def _key(self) -> str:
        return _bucket_and_key(self.url)[1]

    @property
    def _store(self) -> Any:
        return _store(_bucket_and_key(self.url)[0], tuple(sorted(self.options.items())))

    def names(self, behind: str = "") -> list[str]:
        """See `Place.names`: a store gives a thousand names or more an answer."""
        folder = f"{self._key}/"

        def listed() -> Sequence[str]:
            if not behind:
                found = obstore.list_with_delimiter(self._store, folder)
                return [*(each["path"] for each in found["objects"]), *found["common_prefixes"]]
            parts = obstore.list(self._store, folder, offset=f"{folder}{behind}")
            return [each["path"] for part in parts for each in part]

        paths = (path.removeprefix(folder).rstrip("/") for path in _asked(listed))
        return [path for path in paths if "/" not in path]

    def read(self) -> bytes:
        """See `Place.read`."""
        return bytes(_asked(lambda: obstore.get(self._store, self._key).bytes()))

    def mark(self) -> Hashable | None:
        """See `Place.mark`."""
        try:
            with _as_os_errors():
                head = obstore.head(self._store, self._key)
        except FileNotFoundError:
            return None
        except OSError as error:
            if "status code: 4" in str(error):  # no HEAD has a body, where the store says why
                self.read()
            raise
        return head["e_tag"], head["last_modified"]

    def create(self, content: bytes) -> None:
        """See `Place.create`. Where the answer to a put was lost, by this process or by a retry of
        obstore's, the object is asked for: what has this content is what was put here."""
        for last in (False, True):
            try:
                with _as_os_errors():
                    obstore.put(self._store, self._key, content, mode="create", use_multipart=False)
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

    def write(self, content: "bytes | IO[bytes]") -> None:
        """See `Place.write`."""
        with _as_os_errors():
            obstore.put(self._store, self._key, content)

    def delete(self) -> None:
        """See `Place.delete`."""
        with _as_os_errors():
            obstore.delete(self._store, self._key)

    def open_parquet(self, **how: Any) -> pq.ParquetFile:
        """See `Place.open_parquet`."""
        return pq.ParquetFile(self.open(), pre_buffer=True, **how)

    def open(
        self, size: int | None = None, failed: Callable[[OSError], object] = lambda _error: None
    ) -> Any:
        """Open the file to read parts of it; a small one is read at once, by one request. `failed`
        hears of what parts fail with later."""
        found = _asked(self._content_or_size) if size is None else size
        if isinstance(found, int) and found <= IN_MEMORY:
            found = self.read()
        return _Parts(self, found, failed) if isinstance(found, int) else pa.BufferReader(found)

    def _content_or_size(self) -> bytes | int:
        """What a small file holds; of another one, how many bytes it has: what the store would
        send of that is not taken."""
        answer = obstore.get(self._store, self._key)
        size = int(answer.meta["size"])
        return bytes(answer.bytes()) if size <= IN_MEMORY else size

    def read_part(self, first: int, end: int) -> bytes:
        """The bytes between two offsets, the second exclusive. Raises OSError."""
        return bytes(
            _asked(lambda: obstore.get_range(self._store, self._key, start=first, end=end))
        )

    def writer(self) -> "FileWriter":
        """See `Place.writer`."""
        return _Put(self)


class _Parts(io.RawIOBase):
    """A file of which parts are read, each by a request."""

    def __init__(self, place: StorePlace, size: int, failed: Callable[[OSError], object]) -> None:
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
    """Gathers on this host what is put as a whole."""

    def __init__(self, place: StorePlace) -> None:
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


@lru_cache(maxsize=64)
def _bucket_and_key(url: str) -> tuple[str, str]:
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    return f"{scheme}://{bucket}", key


@lru_cache(maxsize=16)
def _store(bucket: str, options: Sequence[tuple[str, str]]) -> Any:
    config: dict[str, Any] = {}
    client: dict[str, Any] = {}
    for name, value in options:
        plain = name.lower()
        short = plain.removeprefix("aws_").removeprefix("azure_").removeprefix("google_")
        if short in _OF_CLIENT:
            client[short] = value
        elif not _OF_DELTA.match(plain):
            config[plain] = value
    open_store: Callable[..., Any] = from_url  # whose options depend on the kind of store
    return open_store(bucket, config=config or None, client_options=client or None)


def _asked(ask: Callable[[], Answer]) -> Answer:
    """The whole answer to what only reads. Raises as a disk does."""

    def once() -> Answer:
        with _as_os_errors():
            return ask()

    return answered_whole(once)


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Let errors of a store be those of a disk: who writes to one knows what they mean. Without
    obstore's own, whose text has more pages, and would be taken for the cause."""
    try:
        yield
    except AlreadyExistsError as error:
        raise FileExistsError(str(error).splitlines()[0]) from None
    except BaseError as error:
        raise OSError(str(error).splitlines()[0]) from None
