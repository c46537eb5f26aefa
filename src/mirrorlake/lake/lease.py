"""Leases: one process at a time lands a cluster, or produces a flow.

Transactions keep the target right even if two processes try (one fences the other), but they would fence each other for
ever. A lease is a locked file in the lake (`Lake.leases`): the lock ends with the process that holds it, even by
kill -9, so nobody waits for a dead one.
"""

import fcntl
import json
import logging
import os
import re
import socket
from datetime import datetime, timezone

from mirrorlake.errors import HeldElsewhere, LakeError
from mirrorlake.lake.lake import Lake

logger = logging.getLogger(__name__)


class Lease:
    """The right to do `what`, such as `flow east->west`, in one lake. Raises LakeError for one opened to be read."""

    def __init__(self, lake: Lake, what: str) -> None:
        self.what = what
        self._file = lake.leases / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', what)}.lock"
        self._handle: int | None = None

    def take(self, sure: bool = False) -> None:
        """Take it. Raises HeldElsewhere, which names the process that has it.

        Where no file can be locked it is taken all the same, with a warning; `sure` raises LakeError there instead.
        """
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._handle = self._locked()
        except OSError as error:
            if sure:
                raise LakeError(
                    f"whether another process has {self.what} cannot be known, since {self._file.parent} has no locks "
                    f"({error.strerror}); let `mirrorlake run` do the work",
                    what=self.what,
                ) from error
            # A mounted volume without locks, or without writing in place, as those of Databricks: the target's
            # transactions are the only guard there, and a job that has one run at a time.
            logger.warning("%s cannot be locked (%s); be sure that only one process runs it", self.what, error.strerror)

    def _locked(self) -> int:
        """A handle of the file with the lock, in which the holder's name is noted. Raises OSError, HeldElsewhere."""
        handle = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "since": now}).encode(), 0)
        except BlockingIOError:
            holder = _holder(handle)
            os.close(handle)
            raise HeldElsewhere(
                f"{self.what} is held by {holder}; stop that process, or let it do the work",
                what=self.what,
                holder=holder,
            ) from None
        except OSError:
            os.close(handle)
            raise
        return handle

    def release(self) -> None:
        """Give it back; does nothing if it was not taken."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _holder(handle: int) -> str:
    try:
        found = json.loads(os.pread(handle, 1_000, 0))
        return f"process {found['pid']} on {found['host']} since {found['since']}"
    except (ValueError, KeyError):
        return "another process"
