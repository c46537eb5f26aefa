"""A thread that records one run from a queue; only `close` waits for it, for some seconds."""

import logging
import queue
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mirrorlake.errors import MissingExtra
from mirrorlake.tracking.store import MlflowStore
from mirrorlake.worker import Worker

logger = logging.getLogger(__name__)

#: The most tasks in the queue; further ones are dropped.
WAITING = 1_000
#: How often figures are read, and how long a store that failed is left alone, seconds.
TICK_SECONDS = 30.0
PAUSE_SECONDS = 60.0

Work = Callable[[MlflowStore, str], None]


@dataclass(frozen=True)
class Begin:
    """The beginning of a run. `started` is seconds since 1970."""

    name: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    texts: Mapping[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.time)


class Recorder:
    """Records a run in a store that may be slow, down or missing. Only the first failure is logged.

    If the store is away at first, the run is created once it answers; figures until then are lost.
    """

    def __init__(
        self,
        make_store: Callable[[], MlflowStore],
        begin: Begin,
        where: str,
        figures: Callable[[], Mapping[str, float]] | None = None,
        tick_seconds: float = TICK_SECONDS,
    ) -> None:
        self._make_store = make_store
        self._begin = begin
        self._where = where
        self._figures = figures
        self._tick_seconds = tick_seconds
        self._queue: queue.Queue[Work | None] = queue.Queue(WAITING)
        self._store: MlflowStore | None = None
        self._run: str | None = None
        self._reported = False
        self._not_before = 0.0
        self._figures_due = time.monotonic() + tick_seconds
        self._thread = Worker("recording of a run", self._turn)
        self._thread.start()

    def params(self, values: Mapping[str, str]) -> None:
        """Add parameters."""
        self._hand_over(lambda store, run: store.params(run, values))

    def metrics(self, values: Mapping[str, float]) -> None:
        """Add one value to each metric, as of now."""
        at = time.time()
        self._hand_over(
            lambda store, run: store.metrics(run, values, int(at * 1000), self._step(at))
        )

    def text(self, name: str, content: str) -> None:
        """Add an artifact."""
        self._hand_over(lambda store, run: store.text(run, name, content))

    def close(self, status: str, seconds: float) -> bool:
        """Record the last figures and the end; return whether that was done within `seconds`."""
        if self._figures is not None:
            self.metrics(self._figures())
        self._hand_over(lambda store, run: store.end(run, status))
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return False
        done = self._thread.join(seconds)
        if not done:
            self._thread.stop()
            self._tell(f"it takes longer than {seconds:.0f} s")
        return self._run is not None and done

    def _step(self, at: float) -> int:
        return max(0, int(at - self._begin.started))

    def _hand_over(self, work: Work) -> None:
        try:
            self._queue.put_nowait(work)
        except queue.Full:
            self._tell("it is slower than what is to be recorded")

    def _turn(self) -> float | None:
        """Do one task of the queue or, after `tick_seconds` without any, queue new figures."""
        try:
            work = self._queue.get(timeout=max(0.0, self._figures_due - time.monotonic()))
        except queue.Empty:
            self._figures_due = time.monotonic() + self._tick_seconds
            if self._figures is not None:
                self.metrics(self._figures())
            return 0.0
        if work is None:
            return None
        self._do(work)
        return 0.0

    def _do(self, work: Work) -> None:
        """Create the run if there is none, then do one task; a task that fails is dropped."""
        if time.monotonic() < self._not_before:
            return
        try:
            if self._store is None:
                self._store = self._make_store()
            if self._run is None:
                run = self._store.begin(
                    self._begin.name, self._begin.tags, int(self._begin.started * 1000)
                )
                self._run = run
                self._store.params(run, self._begin.params)
                for name, content in self._begin.texts.items():
                    self._store.text(run, name, content)
            work(self._store, self._run)
        except Exception as error:  # noqa: BLE001 - whatever a store raises must not disturb the replication
            self._not_before = time.monotonic() + PAUSE_SECONDS
            # The text of another library's error may contain an address with a password.
            self._tell(str(error) if isinstance(error, MissingExtra) else type(error).__name__)

    def _tell(self, why: str) -> None:
        if not self._reported:
            self._reported = True
            logger.warning("this run is not recorded in full: MLflow at %s: %s", self._where, why)
