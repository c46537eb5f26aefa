"""A disk of its own for a lake, that is full for a while and has room again: a tmpfs. Takes Linux,
and root."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: More than a run of hundreds of kills stages, bytes; what is not written takes no memory.
ROOM = 4 << 30
#: How often a size is tried that was too small by the time that it was set.
_TRIES = 20


class Disk:
    """What is mounted at a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def mounted(cls, folder: Path) -> "Disk | None":
        """Mount one at a folder, which is made; None where that is not allowed."""
        folder.mkdir(parents=True)
        disk = cls(folder)
        return disk if _mount("-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)) else None

    @contextmanager
    def full(self) -> Iterator[None]:
        """No room for a byte more, for the time of the block. Raises OSError where it cannot be
        made so small."""
        if not any(self._resized(self._used()) for _ in range(_TRIES)):
            raise OSError(f"{self._folder} cannot be made full")
        try:
            yield
        finally:
            self._resized(ROOM)

    def unmount(self) -> None:
        """Let go of it, and of what is on it."""
        subprocess.run(["umount", "--lazy", str(self._folder)], check=True)

    def _used(self) -> int:
        told = os.statvfs(self._folder)
        return (told.f_blocks - told.f_bfree) * told.f_frsize

    def _resized(self, size: int) -> bool:
        return _mount("-o", f"remount,size={max(size, 4096)}", str(self._folder))


def _mount(*arguments: str) -> bool:
    try:
        return (
            subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False
