"""A lease in an object store, by conditional puts alone: the process that makes the object of the
next number has the lease, and renews it while it works, as long as the object is its own.

The lease of a killed process is known to be free at once on its own host, and elsewhere after it
was not renewed for long. Clocks decide that; where they are wrong, the target's transactions and
Delta's commits still keep the data right.
"""

import json
import logging
import threading
import time
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from mirrorlake.errors import LakeError
from mirrorlake.lake.lease_holder import Holder, LeaseState, holder_of, taken, this_process
from mirrorlake.lake.place import Place

logger = logging.getLogger(__name__)

#: How often a lease is renewed, how soon after a failure, and after how long without renewal it is
#: free, seconds. Each renewal is paid for.
RENEW_SECONDS, AGAIN_SECONDS, DEAD_SECONDS = 100.0, 10.0, 240.0
#: The objects of leases that this process has, or is about to make, each with whose it is: threads
#: may want the same lease.
_had: "dict[str, StoreLock]" = {}


class HeldLease(NamedTuple):
    """The content of an object: the lease's holder, and when it was renewed, seconds since 1970."""

    holder: Holder
    renewed: float

    @property
    def is_dead(self) -> bool:
        """Whether the holder no longer works."""
        if self.holder.is_of_this_host:
            return not self.holder.lives
        return time.time() - self.renewed > DEAD_SECONDS


class StoreLock:
    """One lease, for `what`; `folder` holds its objects."""

    def __init__(self, what: str, folder: Place) -> None:
        self.what = what
        self._folder = folder
        #: False once another process was seen to have taken it.
        self.held = True
        #: The number of the object that this process made, and how it names this process.
        self._mine: tuple[int, Holder] | None = None
        self._ended = threading.Event()
        self._renewing = threading.Lock()

    def take(self, sure: bool) -> None:
        """See `Lease.take`: here the holder is always known."""
        try:
            holder = self._take()
        except OSError as error:
            raise LakeError(f"{self.what} cannot be taken in the lake's store: {error}") from error
        if holder is not None:
            raise taken(self.what, holder)

    def holder(self) -> Holder | None:
        """The process with the lease; takes nothing. Raises LakeError if a store is silent."""
        try:
            return self._holder(self._numbers())
        except OSError as error:
            raise LakeError(
                f"who has {self.what} cannot be read in the lake's store: {error}"
            ) from error

    def state(self) -> LeaseState:
        """The lease's state. Raises OSError."""
        known = [held for number in self._numbers() if (held := self._read(number)) is not None]
        if not known:
            return LeaseState(is_free=True)
        is_free = all(held.is_dead for held in known)
        return LeaseState(is_free, known[-1].holder if is_free else None)

    def _numbers(self) -> list[int]:
        return sorted(int(name) for name in self._folder.names() if name.isdecimal())

    def _holder(self, numbers: Sequence[int]) -> Holder | None:
        for number in reversed(numbers):
            held = self._read(number)
            if held is not None and not self._is_free(held, number):
                return held.holder
        return None

    def _take(self) -> Holder | None:
        """Take the lease; returns the holder instead, if another process has it."""
        while True:
            numbers = self._numbers()
            if (holder := self._holder(numbers)) is not None:
                return holder
            number = numbers[-1] + 1 if numbers else 0
            if not self._make(number):
                continue  # another was quicker
            # One that listed other objects, or none, may have made another number meanwhile. Each
            # looks once its own is there, so at least one of them sees the other, and gives way.
            others = self._others(number)
            if others is None:
                self.release()
                continue
            self.held = True
            for other in others:
                self._delete(other)
            self._begin_to_renew()
            return None

    def _make(self, number: int) -> bool:
        """Make an object of this process; False if there is one. Raises OSError."""
        mine, name = this_process(), str(self._object(number))
        _had.setdefault(name, self)
        try:
            self._object(number).create(_content(mine))
        except OSError as error:
            self._forget(name)  # which may be there all the same
            if isinstance(error, FileExistsError):
                return False
            raise
        _had[name] = self
        self._mine, self._ended = (number, mine), threading.Event()
        return True

    def _begin_to_renew(self) -> None:
        assert self._mine is not None
        number, mine = self._mine
        renewing = threading.Thread(
            target=self._renew, args=(mine, number, self._ended), name="lease", daemon=True
        )
        try:
            renewing.start()
        except BaseException:  # the host may have no thread left
            self.release()
            raise

    def _others(self, mine: int) -> list[int] | None:
        """The other objects, which are free; None, if another process has the lease by one of
        them. Raises OSError, once the object of this process is deleted."""
        try:
            others = [number for number in self._numbers() if number != mine]
            return others if self._holder(others) is None else None
        except OSError:
            self.release()
            raise

    def _is_free(self, held: HeldLease, number: int) -> bool:
        """Whether a lease may be taken behind an object. An object that names this process, but is
        not its own, was left behind when it could not be deleted, or by an earlier process."""
        if held.holder.is_this_process:
            return str(self._object(number)) not in _had
        return held.is_dead

    def release(self) -> None:
        """Give the lease back, as far as the store lets it; does nothing if it was not taken."""
        with self._renewing:  # a renewal under way must not put the object back
            self._ended.set()
        mine, self._mine = self._mine, None
        if mine is not None:
            self._delete(*mine)
            self._forget(str(self._object(mine[0])))

    def _forget(self, name: str) -> None:
        """Note that an object is not of this lease, which may be another thread's."""
        if _had.get(name) is self:
            del _had[name]

    def _delete(self, number: int, made_by: Holder | None = None) -> None:
        """Delete an object that no longer counts; a failure is logged. One that is to be `made_by`
        a process stays if another one has made it again."""
        try:
            if made_by is None or self._is_of(number, made_by):
                self._object(number).delete()
        except OSError as error:
            logger.warning("%s: what is left of it could not be deleted: %s", self.what, error)

    def _renew(self, holder: Holder, number: int, ended: threading.Event) -> None:
        pause = RENEW_SECONDS
        while not ended.wait(pause):
            try:
                with self._renewing:
                    if ended.is_set():
                        return
                    if not self._renewed(number, holder):
                        logger.warning("%s was taken by another process", self.what)
                        self.held = False
                        return
                pause = RENEW_SECONDS
            except BaseException as error:  # noqa: BLE001 - of any kind: nothing else renews it
                pause = AGAIN_SECONDS
                logger.warning("%s could not be renewed: %s", self.what, error)

    def _renewed(self, number: int, holder: Holder) -> bool:
        """Renew an object, unless another process has the lease: a new holder makes the next object
        and deletes this one, and may be gone again later, so that a third one made this number
        again: what was not read here is not replaced. One that takes the lease looks at this object
        once its own is there: it sees it renewed, or is seen here."""
        held, mark = self._read_marked(number)
        if held is None or held.holder != holder:
            return False
        if not self._object(number).renew(_content(holder), mark):
            return False
        if self._read(number + 1) is None:
            return True
        self._delete(number, holder)  # it may have been deleted before it was written
        return False

    def _is_of(self, number: int, holder: Holder) -> bool:
        """Whether an object is there, and names a holder."""
        held = self._read(number)
        return held is not None and held.holder == holder

    def _read(self, number: int) -> HeldLease | None:
        return self._read_marked(number)[0]

    def _read_marked(self, number: int) -> tuple[HeldLease | None, Hashable | None]:
        """An object, and its `Place.mark`; None where it is not there."""
        try:
            content, mark = self._object(number).read_marked()
        except FileNotFoundError:
            return None, None
        document = json.loads(content)
        return HeldLease(holder_of(document), document["renewed"]), mark

    def _object(self, number: int) -> Place:
        return self._folder / str(number)


def _content(holder: Holder) -> bytes:
    return json.dumps({**holder._asdict(), "renewed": time.time()}).encode()
