"""The streaming queries that land a cluster, as one: observed and ended together."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mirrorlake.offsets.positions import TopicAndPartition

if TYPE_CHECKING:  # few records are landed without a query
    from pyspark.sql.streaming.query import StreamingQuery


class LandingQuery:
    """One query of the records and, where Spark's own source reads, one of the heartbeats, which
    may wait for each other.

    `final` is where a query that goes on by itself is to be ended: next offsets, of all partitions
    that it has more of; `close` lets go of what the driver has of it; `fenced` asks whether another
    process has taken over; `stop_after_batch` lets no batch begin behind the one in hand.
    """

    def __init__(
        self,
        *queries: "StreamingQuery",
        final: Mapping[TopicAndPartition, int] | None = None,
        close: Callable[[], None] = lambda: None,
        fenced: Callable[[], bool] = lambda: False,
        stop_after_batch: Callable[[], None] = lambda: None,
    ) -> None:
        self._queries = queries
        self._final = final
        self._close = close
        #: Whether another process has taken over, so that nothing of it is committed any more.
        self.fenced = fenced
        self._take_no_more = stop_after_batch

    @property
    def active(self) -> bool:
        """Whether all of them go on, and have to."""
        return all(query.isActive for query in self._queries) and not self._at_end()

    def _at_end(self) -> bool:
        if self._final is None:
            return False
        covered = self.covered()
        return all(covered.get(key, 0) >= end for key, end in self._final.items())

    @property
    def began(self) -> bool:
        """Whether each of them has come through a batch, or to its end."""
        return (
            all(
                query.lastProgress is not None or (not query.isActive and query.exception() is None)
                for query in self._queries
            )
            or self._at_end()
        )

    def exception(self) -> Exception | None:
        """What ended one of them, if it did not end in order."""
        errors = (query.exception() for query in self._queries if not query.isActive)
        return next((error for error in errors if error is not None), None)

    def covered(self) -> dict[TopicAndPartition, int]:
        """How far each partition is covered, by the queries' own report."""
        return {key: end for query in self._queries for key, end in _progress_ends(query).items()}

    def stop(self) -> None:
        """Stop them, each when no batch of it is in flight: an interrupted one has to be done
        again."""
        self._take_no_more()
        for query in self._queries:
            _stop_between_batches(query)
        self._close()


def _progress_ends(query: "StreamingQuery") -> dict[TopicAndPartition, int]:
    progress = query.lastProgress
    if progress is None:
        return {}
    end = json.loads(progress.json)["sources"][0]["endOffset"] or {}
    # Spark Connect hands the offsets over as a JSON text within the JSON.
    return _parse_ends(json.loads(end) if isinstance(end, str) else end)


def _parse_ends(offsets: Mapping[str, Mapping[str, int]]) -> dict[TopicAndPartition, int]:
    """Offsets of Spark's Kafka source as (topic, partition): next offset."""
    return {
        (topic, int(partition)): end
        for topic, parts in offsets.items()
        for partition, end in parts.items()
    }


def _stop_between_batches(query: "StreamingQuery") -> None:
    deadline = time.monotonic() + 60
    pause = threading.Event()
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        pause.wait(0.005)
    query.stop()
