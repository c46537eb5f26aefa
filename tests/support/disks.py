"""Disks of their own for a lake: one that can be full, and one that can lose its power. Linux alone
has them, and root alone may mount them; a test that may not is skipped. And links as over NFS."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: How often a size is tried that was too small by the time that it was set.
_TRIES = 20


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"no file system can be mounted here: {done.stderr.strip()}")


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "--lazy", str(place)], check=True)


class Disk:
    """A tmpfs that is mounted at a folder, full for a while, and has room again."""

    def __init__(self, folder: Path, room: int) -> None:
        self.folder, self._room = folder, room

    @classmethod
    def mounted(cls, folder: Path, room: int) -> "Disk":
        """Mount one of so many bytes at a folder, which is made; what is not written takes no
        memory. Raises OSError where that is not allowed."""
        folder.mkdir(parents=True)
        _mount("-t", "tmpfs", "-o", f"size={room}", "tmpfs", str(folder))
        return cls(folder, room)

    @contextmanager
    def full(self) -> Iterator[None]:
        """No room for a byte more, for the time of the block. Raises OSError where it cannot be
        made so small."""
        for left in reversed(range(_TRIES)):
            try:
                self._resize(self._used())
                break
            except OSError:  # more was written meanwhile
                if not left:
                    raise
        try:
            yield
        finally:
            self._resize(self._room)

    def unmount(self) -> None:
        """Let go of it, and of what is on it."""
        _unmount(self.folder)

    def _used(self) -> int:
        told = os.statvfs(self.folder)
        return (told.f_blocks - told.f_bfree) * told.f_frsize

    def _resize(self, size: int) -> None:
        _mount("-o", f"remount,size={max(size, 4096)}", str(self.folder))


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Disk]:
    """One for the time of the block."""
    try:
        disk = Disk.mounted(place, megabytes << 20)
    except OSError as error:
        pytest.skip(str(error))
    try:
        yield disk
    finally:
        disk.unmount()


class PowerDisk:
    """An ext4 file system in an image. The image has what was synced; the rest is in the memory of
    the host until the system writes it, after half a minute."""

    def __init__(self, place: Path, megabytes: int) -> None:
        self.place = place
        self._image, self._times = place.with_name(f"{place.name}-0"), 0
        with self._image.open("wb") as image:
            image.truncate(megabytes << 20)
        subprocess.run(["mkfs.ext4", "-q", str(self._image)], check=True)
        self._mount()

    def _mount(self) -> None:
        # Nothing is written for other reasons than a sync: by itself a journal is every 5 seconds.
        _mount("-o", "loop,commit=300", str(self._image), str(self.place))

    def lose_power(self) -> None:
        """Go on with what the disk itself has. Nothing may be writing to it."""
        self._times += 1
        kept = self.place.with_name(f"{self.place.name}-{self._times}")
        subprocess.run(["cp", "--sparse=always", str(self._image), str(kept)], check=True)
        _unmount(self.place)
        self._image.unlink()
        self._image = kept
        self._mount()


@contextmanager
def power_disk(place: Path, megabytes: int = 500) -> Iterator[PowerDisk]:
    """A disk that can lose its power, mounted at a place for the time of the block."""
    place.mkdir()
    try:
        disk = PowerDisk(place, megabytes)
    except OSError as error:
        pytest.skip(str(error))
    try:
        yield disk
    finally:
        _unmount(place)


def send_links_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links are made, and refused when the same request comes again, as by NFS."""
    link = os.link

    def twice(*names: Any) -> None:
        link(*names)
        link(*names)

    monkeypatch.setattr(os, "link", twice)
