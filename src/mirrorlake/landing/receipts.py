"""Receipts: what tasks read of a batch, also in a query's progress, and what is missing. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mirrorlake.errors import ReplicationError, some_of
from mirrorlake.landing.ranges import read_document
from mirrorlake.offsets.positions import (
    Ends,
    Ranges,
    TopicAndPartition,
    offset_count,
    ranges_between,
)
from mirrorlake.offsets.ranges import OffsetRanges

Stretches = Mapping[TopicAndPartition, Sequence[tuple[int, int]]]
"""Offsets by partition, first and last inclusive."""
#: The name of the receipts in a query's progress.
RECEIPTS = "receipts"
#: How many stretches a sentence names.
_NAMED = 5


class ReportedBatch(NamedTuple):
    """The start and end of a batch that Spark reports, and the receipts of its tasks."""

    start: Ends
    end: Ends
    receipts: Sequence[str]

    @property
    def planned(self) -> Ranges:
        """The ranges that its tasks were to read."""
        return ranges_between(self.start, self.end)


def reported_batch(progress: str, starts: Ends) -> ReportedBatch:
    """The batch in the progress of a query, given as JSON. The query began at `starts`: Spark names
    no start for the first batch."""
    report = json.loads(progress)
    # In Spark Connect, the offsets are a JSON text within the JSON.
    given = [report["sources"][0].get(name) for name in ("startOffset", "endOffset")]
    first, last = (json.loads(each) if isinstance(each, str) else each for each in given)
    start = read_document(first)[0] if first else starts
    end = read_document(last)[0] if last else start
    observed = report.get("observedMetrics", {}).get(RECEIPTS, {})
    # In Spark Connect, Spark 4.2 gives a row as its values, beside their schema.
    (receipts,) = observed.get("values") or (observed.get(RECEIPTS),)
    return ReportedBatch(start, end, receipts or ())


def receipt(ranges: Ranges) -> str:
    """The receipt of a task that has read ranges to their ends."""
    read = [[*key, *bounds] for key, bounds in ranges.items()]
    return json.dumps(read, ensure_ascii=False, separators=(",", ":"))


def unread(planned: Ranges, receipts: Iterable[str]) -> Stretches:
    """The planned offsets that no task has read. A task that ran twice gives its receipt twice."""
    read: dict[TopicAndPartition, OffsetRanges] = defaultdict(OffsetRanges)
    for text in receipts:
        for topic, partition, first, end in json.loads(text):
            read[topic, partition].add([(first, end - 1)])
    left = {key: read[key].lacking(first, end - 1) for key, (first, end) in sorted(planned.items())}
    return {key: stretches for key, stretches in left.items() if stretches}


def not_read(alias: str, planned: Ranges, receipts: Iterable[str]) -> ReplicationError | None:
    """The error of a batch that Spark reports as done; None where tasks have read all of it."""
    left = unread(planned, receipts)
    if not left:
        return None
    total = offset_count(planned)
    read = total - sum(last + 1 - first for several in left.values() for first, last in several)
    return ReplicationError(
        f"of a batch of cluster {alias} that Spark reports as done its tasks have read {read:,} of "
        f"{total:,} offsets, and not {stretches_in_words(left)}; they are read again, and where a "
        "hole was staged meanwhile, `mirrorlake status` names it: compare Spark's version with "
        "docs/compatibility.md"
    )


def stretches_in_words(stretches: Stretches) -> str:
    """The first few stretches in words, for a sentence, and how many more there are."""
    named = [
        f"{topic}-{partition} {first:,} to {last:,}"
        for (topic, partition), several in sorted(stretches.items())
        for first, last in several
    ]
    return some_of(named, _NAMED, " and {:,} stretches more")
