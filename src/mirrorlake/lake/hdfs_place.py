"""Files of a lake in HDFS, reached by hdfs-native, as delta-rs does: without Java and Hadoop.
`lake.storage` has Hadoop's settings, which override those of the files in HADOOP_CONF_DIR.

A file is written under another name, and renamed: HDFS does that at once or not at all, and
replaces no existing file unless told to.
"""

import uuid
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import IO

from mirrorlake.errors import first_line
from mirrorlake.extras import needs
from mirrorlake.lake.remote_place import IN_MEMORY, RemotePlace, root_and_path

with needs("hdfs"):
    from hdfs_native import Client, WriteOptions


class HdfsPlace(RemotePlace):
    """A place in HDFS: at a namenode, or at a name service."""

    @property
    def _path(self) -> str:
        return f"/{root_and_path(self.url)[1]}"

    @property
    def _client(self) -> Client:
        return _client(root_and_path(self.url)[0], tuple(sorted(self.options.items())))

    def names(self, behind: str = "") -> list[str]:
        """See `Place.names`: without files that are being written."""
        try:
            with _as_os_errors():
                found = list(self._client.list_status(self._path))
        except FileNotFoundError:
            return []
        names = (each.path.rpartition("/")[2] for each in found)
        return [name for name in names if name > behind and not name.startswith(".")]

    def read(self) -> bytes:
        with _as_os_errors():
            return bytes(self._client.read(self._path).read())

    def mark(self) -> Hashable | None:
        try:
            with _as_os_errors():
                known = self._client.get_file_info(self._path)
        except FileNotFoundError:
            return None
        return known.length, known.modification_time

    def write(self, content: bytes | IO[bytes]) -> None:
        self._put(content, overwrite=True)

    def _put_new(self, content: bytes) -> None:
        self._put(content, overwrite=False)

    def _put(self, content: bytes | IO[bytes], overwrite: bool) -> None:
        folder, _, name = self._path.rpartition("/")
        draft = f"{folder}/.{name}.{uuid.uuid4()}"
        try:
            with _as_os_errors():
                with self._client.create(draft, WriteOptions(create_parent=True)) as file:
                    for part in _parts(content):
                        file.write(part)
                self._client.rename(draft, self._path, overwrite)
        except BaseException:
            with suppress(Exception):  # a leftover draft does no harm
                self._client.delete(draft)
            raise

    def delete(self) -> None:
        with _as_os_errors():
            self._client.delete(self._path)

    def _content_or_size(self) -> bytes | int:
        with _as_os_errors():
            file = self._client.read(self._path)
            return bytes(file.read()) if len(file) <= IN_MEMORY else len(file)

    def read_part(self, first: int, end: int) -> bytes:
        with _as_os_errors():
            return bytes(self._client.read(self._path).read_range(first, end - first))


def _parts(content: bytes | IO[bytes]) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    while part := content.read(IN_MEMORY):
        yield part


@lru_cache(maxsize=16)
def _client(cluster: str, options: Sequence[tuple[str, str]]) -> Client:
    return Client(cluster, config=dict(options))


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Raise HDFS's errors as those of a disk, which writers know, without the namenode's stack."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        kind = type(error) if isinstance(error, OSError) else OSError
        raise kind(f"HDFS: {first_line(error)}") from None
