"""What tasks say that they have read of a batch, and what is missing of what was planned. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from mirrorlake.offsets.positions import Ranges, TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges

Stretches = Mapping[TopicAndPartition, Sequence[tuple[int, int]]]
"""Offsets by partition, first and last inclusive."""
#: How many stretches a sentence names.
_NAMED = 5


def receipt(ranges: Ranges) -> str:
    """What a task says that has read ranges to their ends."""
    read = [[*key, *bounds] for key, bounds in ranges.items()]
    return json.dumps(read, ensure_ascii=False, separators=(",", ":"))


def unread(planned: Ranges, receipts: Iterable[str]) -> Stretches:
    """What was planned and no task has read. A task that ran twice gives its receipt twice."""
    read: dict[TopicAndPartition, OffsetRanges] = defaultdict(OffsetRanges)
    for text in receipts:
        for topic, partition, first, end in json.loads(text):
            read[topic, partition].add([(first, end - 1)])
    left = {key: read[key].lacking(first, end - 1) for key, (first, end) in sorted(planned.items())}
    return {key: stretches for key, stretches in left.items() if stretches}


def stretches_in_words(stretches: Stretches) -> str:
    """Which offsets they are, for a sentence: the first ones by name."""
    named = [
        f"{topic}-{partition} {first:,} to {last:,}"
        for (topic, partition), several in sorted(stretches.items())
        for first, last in several
    ]
    more = len(named) - _NAMED
    return ", ".join(named[:_NAMED]) + (f" and {more:,} stretches more" if more > 0 else "")
