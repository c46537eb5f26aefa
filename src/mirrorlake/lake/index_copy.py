"""A copy of the index of the stage on disk, so that a start need not read files again.

It decides nothing: files of a table never change, a file that it does not know is read, and one
that is no longer in the table is left out. So it may be old, missing or damaged.

The file holds three Arrow streams one after another: paths of files by number, partitions with how
many ranges each has, and the columns of all ranges, in the order of the partitions.
"""

import logging
import os
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa

from mirrorlake.lake.place import sync_to_disk
from mirrorlake.offsets.partition_ranges import PartitionRanges
from mirrorlake.offsets.stage_index import StageIndex

logger = logging.getLogger(__name__)

#: The copy is rewritten after so many new files.
_EVERY_FILES = 1_000
_PATHS = pa.schema([("number", pa.int64()), ("path", pa.string())])
_PARTS = pa.schema(
    [
        *((name, pa.string()) for name in ("source_cluster", "topic")),
        *((name, pa.int64()) for name in ("partition", "ranges")),
    ]
)
_RANGES = pa.schema(
    [(name, pa.int64()) for name in ("generation", "first", "last", "record_count", "file")]
)


class IndexCopy:
    """The copy in one file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._since = 0

    def fill(self, index: StageIndex) -> None:
        """Fill an empty index from the copy; does nothing where the copy is missing or damaged."""
        try:
            with pa.memory_map(str(self._file)) as source:
                paths, parts, ranges = (
                    _read(source, schema) for schema in (_PATHS, _PARTS, _RANGES)
                )
                names, numbered = (paths[name].to_pylist() for name in ("path", "number"))
                numbers = dict(zip(names, numbered, strict=True))
                index.restore(numbers, list(_partitions(parts, ranges)))
        except (OSError, ValueError, pa.ArrowException) as error:
            if not isinstance(error, FileNotFoundError):
                logger.warning(
                    "the copy of the stage's index cannot be read (%s); reading the stage's files",
                    error,
                )

    def note(self, index: StageIndex, files: int) -> None:
        """Count new files; now and then the copy is rewritten."""
        self._since += files
        if self._since >= _EVERY_FILES:
            self.write(index)

    def write(self, index: StageIndex) -> None:
        """Rewrite the copy. Where that fails, the next start takes longer."""
        self._since = 0
        fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        places, ranges = [], []
        for *place, staged in index.parts():
            places.append((*place, len(staged)))
            ranges.append(staged)
        try:
            with pa.OSFile(str(fresh), "wb") as sink:
                numbers = index.numbers()
                _write(sink, _PATHS, [list(numbers.values()), list(numbers)])
                _write(sink, _PARTS, [list(column) for column in zip(*places, strict=True)])
                columns = zip(*(staged.columns() for staged in ranges), strict=True)
                _write(
                    sink, _RANGES, [np.frombuffer(b"".join(column), np.int64) for column in columns]
                )
            sync_to_disk(fresh)  # else it may have zeros for offsets after a loss of power
            os.replace(fresh, self._file)
        except OSError as error:
            logger.warning("the copy of the stage's index cannot be written (%s)", error)


def _write(sink: pa.NativeFile, schema: pa.Schema, columns: list[object]) -> None:
    filled = columns or [[] for _ in schema]
    arrays = [pa.array(values, field.type) for values, field in zip(filled, schema, strict=True)]
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _read(source: pa.NativeFile, schema: pa.Schema) -> pa.Table:
    with pa.ipc.open_stream(source) as reader:
        if reader.schema != schema:
            raise ValueError(f"its columns are {reader.schema.names}")
        return reader.read_all().combine_chunks()


def _partitions(
    parts: pa.Table, ranges: pa.Table
) -> Iterator[tuple[str, str, int, PartitionRanges]]:
    columns = [_numbers(column) for column in ranges.columns]
    counts = parts["ranges"].to_pylist()
    if sum(counts) != ranges.num_rows:
        raise ValueError("it holds another number of ranges than it says")
    places = zip(*(parts[name].to_pylist() for name in _PARTS.names[:3]), strict=True)
    ends = accumulate(counts)
    for (cluster, topic, partition), count, end in zip(places, counts, ends, strict=True):
        own = PartitionRanges.from_columns([column[end - count : end] for column in columns])
        yield cluster, topic, partition, own


def _numbers(column: pa.ChunkedArray) -> "np.ndarray":
    """A column of 64 bits without nulls. Arrow's `to_numpy` imports pandas, which takes longer."""
    return np.concatenate(
        [
            np.frombuffer(chunk.buffers()[1], np.int64, len(chunk), chunk.offset * 8)
            for chunk in column.chunks
        ]
        or [np.empty(0, np.int64)]
    )
