"""Opening the Parquet files of a table as the table names them, and what the footer of a stage's file tells."""

from collections.abc import Iterator
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as fs
import pyarrow.parquet as pq

from mirrorlake.core.stage_index import StagedRange

_PLACE = ("source_cluster", "topic", "partition", "generation")
_COORDINATES = [*_PLACE, "offset"]
_Place = tuple[str, str, int, int]


def open_parquet(uri: str) -> pq.ParquetFile:
    """Open a file as Spark names it: `file:/…` and bare paths locally, any other scheme through Arrow's filesystems.

    Raises OSError (FileNotFoundError included) when this worker cannot open it.
    """
    parsed = urlparse(uri)
    if parsed.scheme in ("", "file"):
        return pq.ParquetFile(unquote(parsed.path), memory_map=True)
    if parsed.scheme == "dbfs" and parsed.path.startswith("/Volumes/"):
        return pq.ParquetFile(unquote(parsed.path))
    filesystem, path = fs.FileSystem.from_uri(uri)
    return pq.ParquetFile(filesystem.open_input_file(path))


def ranges_of_file(path: str) -> list[StagedRange]:
    """What a file of the stage holds, a range for each partition and generation. Reads footers, and the coordinates
    (never the payload) of those row groups that hold more than one partition."""
    held: dict[_Place, tuple[int, int, int]] = {}
    with open_parquet(path) as file:
        for group in range(file.num_row_groups):
            for place, first, last, count in _stretches(file, group):
                low, high, total = held.get(place, (first, last, 0))
                held[place] = (min(low, first), max(high, last), total + count)
    return [StagedRange(*place, first, last, count) for place, (first, last, count) in held.items()]


def _stretches(file: pq.ParquetFile, group: int) -> Iterator[tuple[_Place, int, int, int]]:
    """(place, first, last, count) of each stretch of one partition in a row group."""
    metadata = file.metadata.row_group(group)
    bounds = {}
    for index in range(metadata.num_columns):
        column = metadata.column(index)
        known = column.statistics
        if column.path_in_schema in _COORDINATES and known is not None and known.has_min_max and not known.null_count:
            bounds[column.path_in_schema] = (known.min, known.max)
    if len(bounds) == len(_COORDINATES) and all(bounds[name][0] == bounds[name][1] for name in _PLACE):
        cluster, topic, partition, generation = (bounds[name][0] for name in _PLACE)
        yield (cluster, topic, partition, generation), *bounds["offset"], metadata.num_rows
        return
    yield from _stretches_of_rows(file.read_row_group(group, columns=_COORDINATES, use_threads=False))


def _stretches_of_rows(rows: pa.Table) -> Iterator[tuple[_Place, int, int, int]]:
    rows = rows.combine_chunks()
    columns = {name: pc.fill_null(rows[name], 0) if name == "generation" else rows[name] for name in _PLACE}
    changed = np.zeros(max(0, rows.num_rows - 1), dtype=bool)
    for column in columns.values():
        changed |= pc.not_equal(column[1:], column[:-1]).to_numpy()
    starts = np.concatenate(([0], np.flatnonzero(changed) + 1))
    ends = np.append(starts[1:], rows.num_rows)
    offsets = rows["offset"].to_numpy()
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        cluster, topic, partition, generation = (columns[name][start].as_py() for name in _PLACE)
        part = offsets[start:end]
        yield (cluster, topic, partition, generation), int(part.min()), int(part.max()), end - start
