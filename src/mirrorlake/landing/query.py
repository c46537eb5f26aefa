"""Looking at and ending the streaming query that lands a cluster."""

import json
import threading
import time

from pyspark.sql.streaming.query import StreamingQuery

from mirrorlake.landing.land import parse_ends
from mirrorlake.offsets.positions import TopicAndPartition


def progress_ends(query: StreamingQuery) -> dict[TopicAndPartition, int]:
    """How far a query has covered each partition, by its own report."""
    progress = query.lastProgress
    if progress is None:
        return {}
    end = json.loads(progress.json)["sources"][0]["endOffset"] or {}
    # Spark Connect hands the offsets over as a JSON text within the JSON.
    return parse_ends(json.loads(end) if isinstance(end, str) else end)


def stop_between_batches(query: StreamingQuery) -> None:
    """Stop a query when no batch is in flight: an interrupted one logs a long error and has to be done again."""
    deadline = time.monotonic() + 60
    pause = threading.Event()
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        pause.wait(0.005)
    query.stop()
