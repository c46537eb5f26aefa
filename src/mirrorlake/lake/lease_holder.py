"""The holder of a lease, as it is noted where the lease lies."""

import os
import socket
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple

from mirrorlake.errors import LeaseTaken


class Holder(NamedTuple):
    """A process that took a lease."""

    host: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"

    @property
    def is_of_this_host(self) -> bool:
        """Whether the process is on this host, where it can be seen whether it lives."""
        return self.host == socket.gethostname()

    @property
    def is_this_process(self) -> bool:
        """Whether it has this process's host and pid, as an earlier one in a container may."""
        return self.is_of_this_host and self.pid == os.getpid()

    @property
    def is_gone(self) -> bool:
        """Whether the process is known to be gone, which it never is for another host's."""
        return self.is_of_this_host and not self.lives

    @property
    def lives(self) -> bool:
        """Whether a process of this host is still there."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


class LeaseState(NamedTuple):
    """Whether no process has the lease; its last holder, if that ended without giving it back; and
    the holder of another host, of which that is not known here."""

    is_free: bool
    left_by: Holder | None = None
    elsewhere: Holder | None = None


def this_process() -> Holder:
    """This process, as of now."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Holder(socket.gethostname(), os.getpid(), now)


def holder_of(document: Mapping[str, Any]) -> Holder:
    """The holder that a document names. Raises KeyError."""
    return Holder(document["host"], document["pid"], document["since"])


def taken(what: str, holder: Holder | str) -> LeaseTaken:
    """The error for a lease that another process has."""
    return LeaseTaken(f"{what} is held by {holder}; stop that process, or let it do the work")
