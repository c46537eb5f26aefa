"""The streaming queries that land a cluster, as one: observed and ended together."""

import json
import threading
import time
from collections.abc import Mapping

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from mirrorlake.offsets.positions import TopicAndPartition


class LandingQuery:
    """One query of the records and, where there are any, one of the heartbeats, which may wait for each other."""

    def __init__(self, *queries: StreamingQuery) -> None:
        self._queries = queries

    @property
    def active(self) -> bool:
        """Whether all of them go on."""
        return all(query.isActive for query in self._queries)

    @property
    def began(self) -> bool:
        """Whether each of them has come through a batch, or to its end."""
        return all(
            query.lastProgress is not None or (not query.isActive and query.exception() is None)
            for query in self._queries
        )

    def exception(self) -> StreamingQueryException | None:
        """What ended one of them, if it did not end in order."""
        found = (query.exception() for query in self._queries if not query.isActive)
        return next((error for error in found if error is not None), None)

    def covered(self) -> dict[TopicAndPartition, int]:
        """How far each partition is covered, by the queries' own report."""
        return {key: end for query in self._queries for key, end in _progress_ends(query).items()}

    def stop(self) -> None:
        """Stop them, each when no batch of it is in flight: an interrupted one has to be done again."""
        for query in self._queries:
            _stop_between_batches(query)


def _progress_ends(query: StreamingQuery) -> dict[TopicAndPartition, int]:
    progress = query.lastProgress
    if progress is None:
        return {}
    end = json.loads(progress.json)["sources"][0]["endOffset"] or {}
    # Spark Connect hands the offsets over as a JSON text within the JSON.
    return _parse_ends(json.loads(end) if isinstance(end, str) else end)


def _parse_ends(offsets: Mapping[str, Mapping[str, int]]) -> dict[TopicAndPartition, int]:
    """Offsets of Spark's Kafka source as (topic, partition): next offset."""
    return {(topic, int(partition)): end for topic, parts in offsets.items() for partition, end in parts.items()}


def _stop_between_batches(query: StreamingQuery) -> None:
    deadline = time.monotonic() + 60
    pause = threading.Event()
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        pause.wait(0.005)
    query.stop()
