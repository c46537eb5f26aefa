"""Files of a lake in an object store, reached by obstore, whose options are those of delta-rs (both
are Rust's `object_store`): a topology's `lake.storage` holds for commits and for files alike.
Nothing is renamed or linked in a store: a file is there as a whole or not at all, and `create` is
the store's put-if-absent."""

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import IO, Any

from mirrorlake.extras import needs
from mirrorlake.lake.place import Answer, answered_whole
from mirrorlake.lake.remote_place import IN_MEMORY, RemotePlace, root_and_path

with needs("stores"):
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
    from obstore.store import from_url

#: Options that obstore takes separately: those of its HTTP client, as `object_store` names them
#: (https://docs.rs/object_store, `ClientConfigKey`).
_OF_CLIENT = {
    *("allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only"),
    *("pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes"),
    *("proxy_url", "timeout", "user_agent"),
}
#: Options that only delta-rs has.
_OF_DELTA = re.compile(r"(aws_s3_|dynamo|max_retries|backoff|retry_timeout|mount_)")
#: By what a store knows that an object is still the one that was read.
_VERSION = ("e_tag", "version")


class StorePlace(RemotePlace):
    """A place in an object store: S3, Azure's, Google's, or a compatible one."""

    @property
    def _key(self) -> str:
        return root_and_path(self.url)[1]

    @property
    def _store(self) -> Any:
        return _store(root_and_path(self.url)[0], tuple(sorted(self.options.items())))

    def names(self, behind: str = "") -> list[str]:
        """See `Place.names`: a store lists a thousand names or more per answer."""
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
        return self.read_marked()[0]

    def read_marked(self) -> tuple[bytes, Hashable | None]:
        def got() -> tuple[bytes, Hashable | None]:
            answer = obstore.get(self._store, self._key)
            return bytes(answer.bytes()), _mark_of(answer.meta)

        return _asked(got)

    def mark(self) -> Hashable | None:
        try:
            with _as_os_errors():
                head = obstore.head(self._store, self._key)
        except FileNotFoundError:
            return None
        except OSError as error:
            if "status code: 4" in str(error):  # an answer to HEAD has no body that says why
                self.read()
            raise
        return _mark_of(head)

    def _put_new(self, content: bytes) -> None:
        with _as_os_errors():
            obstore.put(self._store, self._key, content, mode="create", use_multipart=False)

    def write(self, content: "bytes | IO[bytes]") -> None:
        with _as_os_errors():
            obstore.put(self._store, self._key, content)

    def renew(self, content: bytes, mark: Any) -> bool:
        """See `Place.renew`: by a conditional put (If-Match)."""
        mode: Any = {name: each for name, each in zip(_VERSION, mark, strict=False) if each}
        try:
            with _as_os_errors():
                obstore.put(self._store, self._key, content, mode=mode, use_multipart=False)
        except FileExistsError:  # unless a retry of the client found what it had put itself
            return self._holds(content)
        return True

    def delete(self) -> None:
        with _as_os_errors():
            obstore.delete(self._store, self._key)

    def _content_or_size(self) -> bytes | int:
        def got() -> bytes | int:
            answer = obstore.get(self._store, self._key)
            size = int(answer.meta["size"])
            return bytes(answer.bytes()) if size <= IN_MEMORY else size

        return _asked(got)

    def read_part(self, first: int, end: int) -> bytes:
        return bytes(
            _asked(lambda: obstore.get_range(self._store, self._key, start=first, end=end))
        )


def _mark_of(meta: Any) -> Hashable:
    return tuple(meta[name] for name in (*_VERSION, "last_modified"))


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
    """The whole answer to a request that only reads. Raises errors as a disk does."""

    def once() -> Answer:
        with _as_os_errors():
            return ask()

    return answered_whole(once)


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Raise a store's errors as those of a disk, which writers know. The original error is left
    out: its text has more pages, and would be taken for the cause."""
    try:
        yield
    except (AlreadyExistsError, PreconditionError) as error:
        raise FileExistsError(str(error).splitlines()[0]) from None
    except BaseError as error:
        raise OSError(str(error).splitlines()[0]) from None
