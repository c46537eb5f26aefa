"""Leases: one process at a time lands a cluster, or produces a flow.

Transactions keep the target right even if two processes try (one fences the other), but they would
fence each other for ever. A lease is a locked file in the lake (`Lake.leases`): the lock ends with
the process that holds it, even by kill -9, so no process waits for a dead one. Who holds it is
written into the file, and taken out when it is given back: of two hosts each may have locks of its
own, and then that is all that one sees of the other.
"""

import fcntl
import json
import logging
import os
import re
import socket
import uuid
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from mirrorlake.errors import LakeError, LeaseTaken
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.store_lock import StoreLock

logger = logging.getLogger(__name__)


class Holder(NamedTuple):
    """A process that took a lease."""

    host: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"


class Lease:
    """The right to do `what`, such as `flow east->west`, in one lake: taken, or had for a block.
    Raises LakeError for one opened to be read."""

    def __init__(self, lake: Lake, what: str) -> None:
        self.what = what
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", what)
        place = lake.leases
        self._store = StoreLock(place / name) if place.in_store else None
        self._file = Path(str(place)) / f"{name}.lock"
        self._handle: int | None = None

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_error: object) -> None:
        self.release()

    def take(self, sure: bool = False) -> None:
        """Take it. Raises LeaseTaken, which names the process that has it.

        Where no file can be locked, or a process of another host had it and has not given it back,
        it is taken all the same, with a warning; `sure` raises LakeError there instead: it is not
        known whether that process still works.
        """
        if self._store is not None:
            self._take_in_store(self._store)
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._handle, before = self._locked()
        except OSError as error:
            if sure:
                raise LakeError(
                    f"whether another process has {self.what} cannot be known, since "
                    f"{self._file.parent} has no locks ({error.strerror}); let `mirrorlake run` do "
                    "the work"
                ) from error
            # A mounted volume without locks, or without writing in place, as those of Databricks:
            # the target's transactions are the only guard there, and a job that has one run at a
            # time.
            logger.warning(
                "%s cannot be locked (%s); be sure that only one process runs it",
                self.what,
                error.strerror,
            )
            return
        if before is None:
            return
        if sure:
            self.release(before)
            raise LakeError(
                f"whether {before} still has {self.what} cannot be known from here: it has not "
                "given it back; let it do the work, or, if it is gone, start `mirrorlake run` "
                "first"
            )
        logger.warning("%s was not given back by %s; be sure that it is gone", self.what, before)

    def _take_in_store(self, lock: StoreLock) -> None:
        try:
            held = lock.take(_now())
        except OSError as error:
            raise LakeError(f"{self.what} cannot be taken in the lake's store: {error}") from error
        if held is not None:
            raise self._taken(Holder(held.host, held.pid, held.since))

    def _taken(self, holder: Holder | str) -> LeaseTaken:
        return LeaseTaken(
            f"{self.what} is held by {holder}; stop that process, or let it do the work"
        )

    def _locked(self) -> tuple[int, Holder | None]:
        """A handle of the file with the lock, in which the holder's name is noted, and who of
        another host has not given it back. Raises OSError, LeaseTaken."""
        handle = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            before = _holder(handle)
            _note(handle, Holder(socket.gethostname(), os.getpid(), _now()))
        except BlockingIOError:
            holder = _holder(handle) or "another process"
            os.close(handle)
            raise self._taken(holder) from None
        except OSError:
            os.close(handle)
            raise
        return handle, None if before is None or before.host == socket.gethostname() else before

    def release(self, holder: Holder | None = None) -> None:
        """Give it back, or leave it to who is noted as its `holder`; does nothing if it was not
        taken."""
        if self._store is not None:
            self._store.release()
        if self._handle is not None:
            try:
                _note(self._handle, holder)
            finally:
                os.close(self._handle)
                self._handle = None


def locks_work(lake: Lake) -> bool:
    """Whether files can be locked where the leases of a lake are."""
    if lake.leases.in_store:
        return True
    probe = Path(str(lake.leases)) / f"probe-{uuid.uuid4().hex}"
    try:
        probe.parent.mkdir(parents=True, exist_ok=True)
        with probe.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _note(handle: int, holder: Holder | None) -> None:
    os.ftruncate(handle, 0)
    if holder is not None:
        os.pwrite(handle, json.dumps(holder._asdict()).encode(), 0)


def _holder(handle: int) -> Holder | None:
    """Who is noted; None: no process."""
    try:
        document = json.loads(os.pread(handle, 1_000, 0))
        return Holder(document["host"], document["pid"], document["since"])
    except (ValueError, KeyError):
        return None
