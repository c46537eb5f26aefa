"""Incidents of the control tasks of a flow: one per task, open as long as the task fails."""

import logging
import time
from collections.abc import Callable, Iterable

from mirrorlake.errors import ReplicationError
from mirrorlake.lake.event_log import EventLog
from mirrorlake.spark.causes import cause_of

logger = logging.getLogger(__name__)

#: How old the known set of open incidents may be, seconds: a process that died, or works beside
#: this one, may have reported a task that succeeds here.
KNOWN_SECONDS = 60.0
_PREFIX = "control_"


class ControlIncidents:
    """Reports tasks that failed twice in a row, and closes incidents that are over, by the lake's
    open ones, not what this process has seen. For one thread at a time; `clock` gives seconds."""

    def __init__(
        self, flow: str, event_log: EventLog, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._flow = flow
        self._incidents = event_log.incidents
        self._clock = clock
        self._failing: set[str] = set()
        self._open: frozenset[str] = frozenset()
        self._checked = float("-inf")

    def is_failing(self, task: str) -> bool:
        """Whether the task's last turn failed."""
        return task in self._failing

    def failed(self, task: str, error: BaseException) -> ReplicationError | None:
        """Note a failed turn. Returns the error that operators see: None for a first failure."""
        logger.warning("flow %s: control of %s: %s", self._flow, task, cause_of(error))
        if task not in self._failing:
            self._failing.add(task)
            return None
        problem = ReplicationError(
            f"control of {task} of flow {self._flow} fails: {cause_of(error)}"
        )
        self._quietly(lambda: self._incidents.open(self._flow, kind_of(task), problem), task)
        self._checked = float("-inf")
        return problem

    def succeeded(self, task: str) -> None:
        """Close the incident of a task that succeeded, whichever process opened it."""
        self._failing.discard(task)
        self._quietly(lambda: self._close({kind_of(task)}), task)

    def not_done(self, tasks: Iterable[str]) -> None:
        """Close incidents of tasks that the flow no longer has; `tasks` are those that it has."""
        done = {kind_of(task) for task in tasks}
        self._quietly(
            lambda: self._close({kind for kind in self._known() if kind not in done}),
            "tasks that are off",
        )

    def _close(self, kinds: set[str]) -> None:
        over = kinds & self._known()
        if over:
            self._incidents.close_kinds([self._flow], over)
            self._open -= over

    def _known(self) -> frozenset[str]:
        """The kinds of this flow's open control incidents."""
        if self._clock() - self._checked >= KNOWN_SECONDS:
            self._open = frozenset(
                kind for kind in self._incidents.open_kinds(self._flow) if kind.startswith(_PREFIX)
            )
            self._checked = self._clock()
        return self._open

    def _quietly(self, work: Callable[[], None], task: str) -> None:
        """Call `work`; if the lake does not take its rows, go on; the next turn reports again."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the task itself may be well
            self._checked = float("-inf")
            logger.error(
                "flow %s: news of control of %s were not written: %s",
                self._flow,
                task,
                cause_of(error),
            )


def kind_of(task: str) -> str:
    """The kind of a task's incident."""
    return _PREFIX + task.replace(" ", "_")
