"""A lease as a locked file: the lock ends with the process that holds it, even by kill -9, so none
waits for a dead one. The holder is written into it, and removed when the lease is given back: two
hosts may each have locks of their own, and then this note is all that one sees of the other."""

import fcntl
import json
import logging
import os
from errno import EDQUOT, ENOSPC
from pathlib import Path

from mirrorlake.errors import LakeError
from mirrorlake.lake.lease_holder import Holder, LeaseState, holder_of, taken, this_process

logger = logging.getLogger(__name__)

_LEFT = "left"

#: The errors of a disk without room: they do not say whether files can be locked there.
_FULL = (ENOSPC, EDQUOT)


class FileLock:
    """One lease, for `what`, in a file."""

    #: A process does not lose its lock.
    held = True

    def __init__(self, what: str, file: Path, brief: bool = False) -> None:
        """`brief`: see `Lease`."""
        self.what = what
        self.file = file
        #: The last holder, if `take` found a process of this host that did not give the lease back.
        self.left_by: Holder | None = None
        #: Whether files can be locked there, as far as `take` has found.
        self.can_lock = True
        #: The process of another host that had not given the lease back when `take` took it.
        self.taken_from: Holder | None = None
        self._brief = brief
        self._handle: int | None = None

    def take(self, sure: bool) -> None:
        """See `Lease.take`. Raises OSError where the disk has no room for the file."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._handle, before, left = self._locked()
        except OSError as error:
            if error.errno in _FULL:
                raise
            self.can_lock = False
            if sure:
                raise LakeError(
                    f"whether another process has {self.what} cannot be known, since "
                    f"{self.file.parent} has no locks ({error.strerror}); let `mirrorlake run` do "
                    "the work"
                ) from error
            # A mounted volume without locks, or without writing in place, as those of Databricks:
            # the only guards there are the target's transactions, and jobs with one run at a time.
            logger.warning(
                "%s cannot be locked (%s); be sure that only one process runs it",
                self.what,
                error.strerror,
            )
            return
        last = before or left
        self.left_by = last if last is not None and last.is_gone else None
        if before is None or before.is_of_this_host:
            return
        if sure:
            self.release(before)
            raise LakeError(
                f"whether {before} still has {self.what} cannot be known from here: it has not "
                "given it back; let it do the work, or, if it is gone, start `mirrorlake run` "
                "first"
            )
        self.taken_from = before
        logger.warning("%s was not given back by %s; be sure that it is gone", self.what, before)

    def _locked(self) -> tuple[int, Holder | None, Holder | None]:
        """The locked file, in which this process is noted if there is room; the holder that has not
        given it back; and one that a `brief` holder found gone. Raises OSError, LeaseTaken."""
        handle = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            before, left = _noted(handle), _noted(handle, _LEFT)
            self._note_this(handle)
        except BlockingIOError:
            holder = _noted(handle) or "another process"
            os.close(handle)
            raise taken(self.what, holder) from None
        except OSError:
            os.close(handle)
            raise
        return handle, before, left

    def _note_this(self, handle: int) -> None:
        """Note this process as the holder. A disk that is full for a moment does not cost the lock,
        which this process would then lack for as long as it runs."""
        try:
            _note(handle, this_process())
        except OSError as error:
            if error.errno not in _FULL:
                raise
            logger.warning("who has %s is not noted (%s)", self.what, error.strerror)

    def holder(self) -> Holder | None:
        """The process that has the lease, as far as a lock shows it here; nothing is taken."""
        try:
            handle = os.open(self.file, os.O_RDONLY)
        except OSError:  # no process ever had it, or `take` says what is wrong
            return None
        try:
            holder = _noted(handle)
            if holder is None or holder.is_gone:
                return None
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return holder
        except OSError:
            return None
        finally:
            os.close(handle)
        return None

    def state(self) -> LeaseState | None:
        """The lease's state, as this host knows it; None if no file was locked. Raises OSError."""
        try:
            handle = os.open(self.file, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            holder, left = _noted(handle), _noted(handle, _LEFT)
            last = holder or left
            if last is None:
                return LeaseState(is_free=_could_lock(handle))  # a full disk noted no holder
            if not last.is_of_this_host:
                return LeaseState(is_free=holder is None, elsewhere=holder)
            # by the lock, where another process has its number by now
            gone = last if last.is_gone or _could_lock(handle) else None
        finally:
            os.close(handle)
        return LeaseState(is_free=holder is None or gone is not None, left_by=gone)

    def release(self, holder: Holder | None = None) -> None:
        """Give the lease back, or leave it to the noted `holder`; nothing if it was not taken."""
        if self._handle is not None:
            try:
                _note(self._handle, holder, self.left_by if self._brief else None)
            finally:
                os.close(self._handle)
                self._handle = None


def _could_lock(handle: int) -> bool:
    """Whether no process has a file's lock, where files can be locked."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _note(handle: int, holder: Holder | None, left: Holder | None = None) -> None:
    """Note the holder; or that no process has the lease, since `left` left it."""
    os.ftruncate(handle, 0)
    if holder is not None:
        os.pwrite(handle, json.dumps(holder._asdict()).encode(), 0)
    elif left is not None:
        os.pwrite(handle, json.dumps({_LEFT: left._asdict()}).encode(), 0)


def _noted(handle: int, part: str | None = None) -> Holder | None:
    """The noted holder, in the note or a part of it; None where there is none."""
    try:
        document = json.loads(os.pread(handle, 1_000, 0))
        return holder_of(document if part is None else document[part])
    except (ValueError, KeyError):
        return None
