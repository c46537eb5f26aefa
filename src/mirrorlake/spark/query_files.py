"""Where the next start of a Structured Streaming query would begin to read, from the files of its
checkpoint. Pure.

A checkpoint has `offsets/N`, the end of batch N, written before it; `commits/N`, written after it;
and `sources/I/0`, the start of source I. A restarted query repeats batch N if it is not committed.
So the next start begins at the end of the last *committed* batch, or at the sources' start.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mirrorlake.errors import InputError
from mirrorlake.offsets.positions import TopicAndPartition, by_topic

EARLIEST, LATEST = -2, -1
"""What Spark writes in `startingOffsets` for the start and the end of a partition."""
_NO_OFFSET = "-"
_BEGAN = "\0v1\n"  # the zero byte is there for Spark 2.1.0 (SPARK-19517)

Offsets = dict[TopicAndPartition, int]
"""Positions by topic and partition."""


@dataclass(frozen=True)
class QueryPosition:
    """Where a query goes on. `batch` is the last committed one, None if there is none; `sources`
    has the positions of every source that reads Kafka, by its number among the query's."""

    batch: int | None
    sources: Mapping[int, Offsets]


def committed_batch(offsets: Collection[int], commits: Collection[int]) -> int | None:
    """The number of the last committed batch, None if there is none.

    Raises InputError if its offsets are gone, or if there are none at all.
    """
    if not offsets:
        raise InputError("it holds no offsets: the query has not begun a batch yet")
    if not commits:
        return None
    newest = max(commits)
    if newest not in offsets:
        raise InputError(
            f"batch {newest} is committed and its offsets are missing: the checkpoint is not whole"
        )
    return newest


def read_position(
    batch: int | None, offsets: str | None, began: Mapping[int, str]
) -> QueryPosition:
    """Read the positions from the text of `offsets/<batch>` and from those of `sources/I/0`.

    `offsets` is None if no batch is committed. A source without an offset in that batch goes on at
    its start. Raises InputError for files that are not Spark's, and if no source reads Kafka.
    """
    sources: dict[int, Offsets] = {}
    lines = {} if offsets is None else dict(enumerate(_body(offsets)[1:]))
    for number in sorted({*lines, *began}):
        line = lines.get(number, _NO_OFFSET)
        position = _kafka_offsets(
            began.get(number, "").removeprefix(_BEGAN) if line == _NO_OFFSET else line
        )
        if position is not None:
            sources[number] = position
    if not sources:
        raise InputError("none of the query's sources reads Kafka, or none has begun")
    return QueryPosition(batch, sources)


def starting_offsets(positions: Mapping[TopicAndPartition, int]) -> str:
    """The text for Spark's option `startingOffsets`."""
    return json.dumps(by_topic(positions), ensure_ascii=False, separators=(",", ":"))


def _body(text: str) -> list[str]:
    """The lines after the version. Raises InputError for another version than v1."""
    lines = [line for line in text.splitlines() if line]
    if not lines or lines[0] != "v1":
        beginning = lines[0][:20] if lines else ""
        raise InputError(
            f"its files begin with {beginning!r} and not with 'v1': no checkpoint of Spark that is "
            "known here"
        )
    return lines[1:]


def _kafka_offsets(line: str) -> Offsets | None:
    """Positions of a Kafka source, as `{"topic":{"0":5}}`; None for another's, or no offset."""
    try:
        document = json.loads(line)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    offsets: Offsets = {}
    for topic, partitions in document.items():
        if not isinstance(partitions, dict):
            return None
        for partition, offset in partitions.items():
            if not partition.isdecimal() or type(offset) is not int:
                return None
            offsets[topic, int(partition)] = offset
    return offsets or None
