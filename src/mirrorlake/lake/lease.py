"""Leases: one process at a time lands a cluster, or produces a flow.

Transactions keep the target right even if two processes try (one fences the other), but they would
do so for ever. A lease is in the lake (`Lake.leases`): a locked file, or an object in a store.
"""

import fcntl
import re
import uuid
from collections.abc import Sequence
from typing import Protocol

from mirrorlake.errors import Fenced
from mirrorlake.lake.file_lock import FileLock
from mirrorlake.lake.folder import leases_at
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease_holder import Holder, LeaseState, taken
from mirrorlake.lake.place import FolderPlace, Place
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.store_lock import StoreLock


class AnyLease(Protocol):
    """Sole right to work, kept by the lake (`Lease`), or Kafka (`run.group_lease.GroupLease`)."""

    @property
    def stands_by(self) -> bool:
        """Whether a process that does not have the lease waits for it, instead of ending."""
        ...

    @property
    def held(self) -> bool:
        """Whether this process still has the lease, after `take`."""
        ...

    def take(self, sure: bool = False) -> None: ...

    def release(self) -> None: ...


def taken_over(work: str, lease: AnyLease) -> Fenced:
    """The error for a process whose lease another process has taken."""
    what_now = "stands by" if lease.stands_by else "ends: be sure that only one process does this"
    return Fenced(
        f"another process has taken over {work} while this one was suspended or cut off; nothing "
        f"that this one does counts any more, and it {what_now}"
    )


class Lease:
    """The right to do `what`, such as `flow east->west`, in one lake: taken, or held for a block.
    Raises LakeError for a lake that was opened to be read. `brief` is for a command: once it gives
    the lease back, it is still known that the holder before it was killed."""

    def __init__(self, lake: Lake, what: str, brief: bool = False) -> None:
        self.lock = _lock(lake.leases, what, brief)

    #: Two processes of one flow are a mistake, unless the topology file says otherwise.
    stands_by = False

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_error: object) -> None:
        self.release()

    @property
    def held(self) -> bool:
        """See `AnyLease.held`: a lock stays; one in a store is lost if not renewed for long."""
        return self.lock.held

    @property
    def was_left(self) -> bool:
        """Whether, after `take`, the lease's last holder was a process of this host that is gone
        without giving it back: nothing continues its work now. Not known of a process on another
        host, or of a lease in a store."""
        return isinstance(self.lock, FileLock) and self.lock.left_by is not None

    @property
    def can_exclude(self) -> bool:
        """Whether the lease excludes others, as `take` found: not where no file is locked."""
        return not isinstance(self.lock, FileLock) or self.lock.can_lock

    @property
    def taken_from(self) -> Holder | None:
        """After `take`, the process of another host that had not given the lease back, and may
        still work; None if there was none, or the lease is one in a store."""
        return self.lock.taken_from if isinstance(self.lock, FileLock) else None

    def take(self, sure: bool = False) -> None:
        """Take the lease. Raises LeaseTaken, which names the process that has it.

        Where no file can be locked, or a process of another host had the lease and has not given it
        back, it is taken all the same, with a warning; `sure` raises LakeError there instead, since
        that process may still work. Raises LakeError where a store does not answer.
        """
        self.lock.take(sure)

    def release(self) -> None:
        """Give the lease back; does nothing if it was not taken."""
        self.lock.release()


def check_free(leases: Place, work: Sequence[str]) -> None:
    """Raise LeaseTaken where other processes hold all leases of some work, at the place of a lake's
    leases: there would be nothing to do. Raises LakeError where a store does not answer."""
    holders = [_lock(leases, what).holder() for what in work]
    if holders and holders[0] is not None and None not in holders:
        raise taken(work[0], holders[0])


def lease_state(lake: Reader, what: str) -> LeaseState | None:
    """The state of a lease in a lake at a path or URL; None where it is unknown. Raises OSError."""
    return None if lake.directory is None else _lock(leases_at(lake.directory), what).state()


def _lock(leases: Place, what: str, brief: bool = False) -> FileLock | StoreLock:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", what)
    if isinstance(leases, FolderPlace):
        return FileLock(what, leases / f"{name}.lock", brief)
    return StoreLock(what, leases / name)


def locks_work(lake: Lake) -> bool:
    """Whether files can be locked at the place of a lake's leases."""
    place = lake.leases
    if not isinstance(place, FolderPlace):
        return True
    probe = place / f"probe-{uuid.uuid4().hex}"
    try:
        probe.parent.mkdir(parents=True, exist_ok=True)
        with probe.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True
