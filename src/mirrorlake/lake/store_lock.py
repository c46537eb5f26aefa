"""A lock in an object store, by nothing but put-if-absent: who makes the object of the next number
has it, and renews it while it works.

The lock of a process that was killed is seen to be dead at once on its own host, elsewhere when it
was not renewed for long. That is judged by clocks: what is right even where they are wrong is the
target's transactions and Delta's commits.
"""

import json
import logging
import os
import socket
import threading
import time
from typing import NamedTuple

from mirrorlake.lake.place import Place

logger = logging.getLogger(__name__)

#: How often a lock is renewed, and after how long without it is dead, seconds.
RENEW_SECONDS, DEAD_SECONDS = 60.0, 240.0


class Held(NamedTuple):
    """What an object says: who has the lock, since when, and when it was renewed, seconds."""

    host: str
    pid: int
    since: str
    renewed: float

    @property
    def is_dead(self) -> bool:
        """Whether who took it does not work any more."""
        if self.host == socket.gethostname():
            return not _lives(self.pid)
        return time.time() - self.renewed > DEAD_SECONDS


class StoreLock:
    """One lock; `folder` holds its objects."""

    def __init__(self, folder: Place) -> None:
        self._folder = folder
        self._mine: int | None = None
        self._held: Held | None = None
        self._ended = threading.Event()

    def take(self, since: str) -> Held | None:
        """Take it. Returns who has it, if another does. Raises OSError."""
        while True:
            numbers = sorted(int(name) for name in self._folder.names() if name.isdecimal())
            newest = numbers[-1] if numbers else -1
            holder = self._read(newest)
            if holder is not None and not holder.is_dead:
                return holder
            self._held = Held(socket.gethostname(), os.getpid(), since, time.time())
            try:
                self._object(newest + 1).create(self._content())
            except FileExistsError:
                continue  # another was quicker
            self._mine = newest + 1
            for number in numbers:
                self._object(number).delete()
            threading.Thread(target=self._renew, name="lock", daemon=True).start()
            return None

    def release(self) -> None:
        """Give it back."""
        self._ended.set()
        mine, self._mine = self._mine, None
        if mine is not None:
            self._object(mine).delete()

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            mine, held = self._mine, self._held
            if mine is None or held is None:
                return
            try:
                if self._read(mine + 1) is not None:
                    logger.warning("lock %s was taken by another process", self._folder)
                    return
                self._held = held._replace(renewed=time.time())
                self._object(mine).write(self._content())
            except OSError as error:
                logger.warning("lock %s could not be renewed: %s", self._folder, error)

    def _read(self, number: int) -> Held | None:
        """Who made an object; None where there is none."""
        try:
            return Held(**json.loads(self._object(number).read()))
        except FileNotFoundError:
            return None

    def _content(self) -> bytes:
        assert self._held is not None
        return json.dumps(self._held._asdict()).encode()

    def _object(self, number: int) -> Place:
        return self._folder / str(number)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
