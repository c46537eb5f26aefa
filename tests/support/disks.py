"""Disks of their own for a lake: one that can be full, and one that can lose its power. Linux alone
has them, and root alone may mount them; a test that may not is skipped."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """A file system of its own for the time of the block."""
    place.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place))
    try:
        yield place
    finally:
        _unmount(place)


def fill_up(disk: Path) -> Path:
    """Take all the room that a file system has left; returns the file that has it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 65_536)
    return ballast


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
    disk = PowerDisk(place, megabytes)
    try:
        yield disk
    finally:
        _unmount(place)
