"""A landing query, as the worker that keeps it going sees it: a streaming query of Spark's, or a
job of few records that this process did at once."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from mirrorlake.landing.job import read_document
from mirrorlake.offsets.positions import TopicAndPartition

if TYPE_CHECKING:  # few records are landed without a query
    from pyspark.sql.streaming.query import StreamingQuery

#: How long a stop waits for the batch in hand, seconds.
STOP_SECONDS = 60.0


class LandingQuery(Protocol):
    """Lands a cluster's partitions until it is stopped, or up to ends."""

    @property
    def active(self) -> bool:
        """Whether it goes on, and has to."""

    @property
    def began(self) -> bool:
        """Whether it has come through a batch, or to its end."""

    def exception(self) -> Exception | None:
        """What ended it, if it did not end in order."""

    def covered(self) -> dict[TopicAndPartition, int]:
        """How far each partition is covered, as it reports itself."""

    def fenced(self) -> bool:
        """Whether another process has taken over, so that nothing of it is committed any more."""

    def stop(self) -> None:
        """Stop it when no batch is in flight, as far as that is not too long: an interrupted one
        has to be done again."""


class StreamedLanding:
    """A streaming query of Spark's.

    `final` is where it is to be ended: next offsets, of all partitions that it has more of; None
    where it goes on. `stop_after_batch` lets no batch begin behind the one in hand, and `close`
    lets go of what the driver has of the query: whether it was stopped within a batch, after
    STOP_SECONDS.
    """

    def __init__(
        self,
        query: "StreamingQuery",
        final: Mapping[TopicAndPartition, int] | None,
        fenced: Callable[[], bool],
        close: Callable[[bool], None],
        stop_after_batch: Callable[[], None] = lambda: None,
    ) -> None:
        self._query = query
        self._final = final
        self.fenced = fenced
        self._close = close
        self._stop_after_batch = stop_after_batch

    @property
    def active(self) -> bool:
        """See `LandingQuery.active`."""
        return bool(self._query.isActive) and not self._at_end()

    def _at_end(self) -> bool:
        if self._final is None:
            return False
        covered = self.covered()
        return all(covered.get(key, 0) >= end for key, end in self._final.items())

    @property
    def began(self) -> bool:
        """See `LandingQuery.began`."""
        return self._query.lastProgress is not None or not (
            self._query.isActive or self.exception()
        )

    def exception(self) -> Exception | None:
        """See `LandingQuery.exception`."""
        return None if self._query.isActive else self._query.exception()

    def covered(self) -> dict[TopicAndPartition, int]:
        """See `LandingQuery.covered`."""
        progress = self._query.lastProgress
        end = None if progress is None else json.loads(progress.json)["sources"][0]["endOffset"]
        # Spark hands the offsets over as a JSON text within the JSON where it is one of Connect.
        document = json.loads(end) if isinstance(end, str) else end
        return read_document(document)[0] if document else {}

    def stop(self) -> None:
        """See `LandingQuery.stop`."""
        self._stop_after_batch()
        query, deadline, pause = self._query, time.monotonic() + STOP_SECONDS, threading.Event()
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            pause.wait(0.005)
        interrupted = bool(query.isActive) and time.monotonic() >= deadline
        query.stop()
        self._close(interrupted)


class LandedHere:
    """A job that is over: `covered` has how far it came, unless an `error` ended it."""

    active = False

    def __init__(
        self,
        covered: Mapping[TopicAndPartition, int],
        error: Exception | None,
        fenced: Callable[[], bool],
    ) -> None:
        self.began = error is None
        self._covered = {} if error is not None else dict(covered)
        self._error = error
        self.fenced = fenced

    def exception(self) -> Exception | None:
        """See `LandingQuery.exception`."""
        return self._error

    def covered(self) -> dict[TopicAndPartition, int]:
        """See `LandingQuery.covered`."""
        return self._covered

    def stop(self) -> None:
        """Nothing goes on."""
