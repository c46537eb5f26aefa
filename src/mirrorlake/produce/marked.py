"""Where a target has a replay's records, by their headers: what tells how far the replay is once
the target has forgotten its position."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from mirrorlake.offsets.runs import Segment
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.older_lake import segments_at

#: The header of a replayed record that holds its place at the source, behind its own headers.
SOURCE_HEADER = "mirrorlake-source"


def marked_segments(
    records: Iterable[pa.RecordBatch], plan: PartitionPlan, mark: tuple[str, bytes]
) -> list[Segment] | None:
    """The segments of the records that have a mark among those of the target partition of a plan,
    behind the end of its map. None where their headers do not say which records they are."""
    source, target = list[int](), list[int]()
    for offset, headers in _rows(records):
        pairs = [(header["key"], header["value"]) for header in headers or ()]
        if mark not in pairs and (None, None) not in pairs:
            continue
        place = _place([value for name, value in pairs if name == SOURCE_HEADER])
        least = source[-1] + 1 if source else plan.floor.source
        if place is None or place[:2] != plan.key or place[2] < least:
            return None
        source.append(place[2])
        target.append(offset)
    return list(segments_at(np.array(source, np.int64), np.array(target, np.int64)))


def _rows(records: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[dict[str, Any]] | None]]:
    """Offset and headers of each record."""
    for batch in records:
        offsets, headers = batch.column("offset").to_pylist(), batch.column("headers").to_pylist()
        yield from zip(offsets, headers, strict=True)


def _place(values: list[bytes | None]) -> tuple[str, int, int] | None:
    """The topic, partition and offset that the last one of these names; None if it names none."""
    with suppress(IndexError, TypeError, ValueError, KeyError):
        place = json.loads(values[-1] or b"")
        return str(place["topic"]), int(place["partition"]), int(place["offset"])
    return None
