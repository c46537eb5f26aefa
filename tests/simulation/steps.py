"""The steps of a simulated process, and what may go wrong at each of them.

Everything that the simulation replaces (Kafka calls, commits to tables, reads of the stage) calls
`reach` before and behind its effect. A fault that is armed strikes at the n-th step from then on:
so a process can die between any two effects, and an answer can be lost although the effect took
place.
"""

import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from deltalake.exceptions import DeltaError

Kind = Literal["driver", "worker", "zombie", "error", "foreign", "less", "full", "still"]
#: What can strike: the driver dies and its workers with it; one worker dies; the driver dies and
#: the task goes on later, when others have taken over; a call fails; another producer writes into
#: the target partition; a reader of the stage ends early and says nothing.
KINDS: tuple[Kind, ...] = ("driver", "worker", "zombie", "error", "foreign", "less")
#: Beside these the lake's disk may be full, from a step on until the end of the replicator's piece
#: of work.
FULL: Kind = "full"
#: The process stands still in the middle of its work, where two processes are simulated.
STILL: Kind = "still"
Answer = TypeVar("Answer")


class Death(BaseException):
    """The driver's process has died here, as by kill -9: no handler of ours may have a say."""


class WorkerDeath(BaseException):
    """The worker's process has died here."""


class TaskFailed(Exception):
    """What the driver hears of a task that failed; `str` of it names the cause, as Spark's errors
    do."""


@dataclass
class Fault:
    """Something that strikes at the `steps`-th step from now on (1 is the next one)."""

    kind: Kind
    steps: int


@dataclass
class Steps:
    """Counts steps and lets the armed fault strike. Not for use by two threads at once: they take
    turns."""

    fault: Fault | None = None
    #: The names of all steps so far, for whoever reads a schedule that failed.
    taken: list[str] = field(default_factory=list)
    _task: "Parkable | None" = None
    #: The work of a process that may stand still.
    process: "Parkable | None" = None

    def write(self, name: str, error: Callable[[], Exception]) -> None:
        """A step in front of a write to the lake, of which nothing is there yet. A full disk
        refuses it."""
        self.reach(name, error)
        self.need_room(name)

    def need_room(self, name: str) -> None:
        """No step, but a write that a full disk refuses."""
        if self.fault is not None and self.fault.kind == FULL and self.fault.steps <= 0:
            self.taken.append(f"no room at {name}")
            text = f"{name}: No space left on device (os error 28)"
            # As Python says it of a file, or as delta-rs says it of a commit.
            raise (
                OSError(errno.ENOSPC, text)
                if len(self.taken) % 2
                else DeltaError(f"Generic error: {text}")
            )

    def reach(
        self, name: str, error: Callable[[], Exception], foreign: Callable[[], None] | None = None
    ) -> None:
        """A step. `error` makes what a failing call would raise here, `foreign` is what a stranger
        could do here."""
        if (
            self.fault is None
            or self.fault.kind == "less"
            or (self.fault.kind == "foreign" and foreign is None)
        ):
            return
        if self.fault.kind == FULL:
            self.fault.steps -= 1
            return
        if self.fault.kind in ("worker", "zombie") and self._task is None:
            return
        self.fault.steps -= 1
        if self.fault.steps > 0:
            return
        kind, self.fault = self.fault.kind, None
        self.taken.append(f"{kind} at {name}")
        if kind == "error":
            raise error()
        if kind == "worker":
            raise WorkerDeath
        if kind == "foreign" and foreign is not None:
            foreign()
        elif kind == "zombie" and self._task is not None:
            self._task.park()
        elif kind == STILL and self.process is not None:
            mine, self._task = self._task, None
            self.process.park()
            self._task = mine
        elif kind == "driver":
            raise Death

    def ends_early(self, name: str) -> bool:
        """A step of a reader: whether it ends early, without an error."""
        if self.fault is None or self.fault.kind != "less":
            return False
        self.fault.steps -= 1
        if self.fault.steps > 0:
            return False
        self.fault = None
        self.taken.append(f"less at {name}")
        return True

    def run_task(self, work: Callable[[], Answer]) -> Answer:
        """Run what a worker does. Raises Death when the driver died meanwhile, the work going on or
        not."""
        task = Parkable(work)
        self._task = task
        try:
            if self.fault is None or self.fault.kind != "zombie":
                return work()
            task.start()
            if task.parked:
                self.zombies.append(task)
                raise Death
            return task.answer()
        finally:
            self._task = None

    zombies: "list[Parkable]" = field(default_factory=list)

    def wake(self) -> None:
        """Let the tasks that outlived their driver come to their end."""
        while self.zombies:
            self.zombies.pop(0).resume()

    def bury(self) -> None:
        """End those tasks where they are."""
        while self.zombies:
            self.zombies.pop().bury()


class Parkable:
    """Work that can be held up at a step, in a thread of its own that only runs while the caller
    waits for it."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.parked = False
        self._work = work
        self._answer: object = None
        self._error: BaseException | None = None
        self._dead = False
        self._theirs, self._ours = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ours.acquire()

    def park(self) -> None:
        """Called by the work itself: stay here until somebody resumes it."""
        self.parked = True
        self._ours.release()
        self._theirs.acquire()
        self.parked = False
        if self._dead:
            raise WorkerDeath

    def resume(self) -> None:
        self._theirs.release()
        self._ours.acquire()

    def bury(self) -> None:
        self._dead = True
        self.resume()

    def answer(self) -> object:
        if self._error is not None:
            raise self._error
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._work()
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            self._error = error
        finally:
            self._ours.release()
