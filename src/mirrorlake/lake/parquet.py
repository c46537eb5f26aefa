"""Opening the Parquet files of a table as the table names them, and what offsets files of the stage hold."""

import mmap
from collections.abc import Sequence
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as fs
import pyarrow.parquet as pq

from mirrorlake.offsets.stage_index import StagedRange

_PLACE = ("source_cluster", "topic", "partition", "generation")
_TYPES = (pa.string(), pa.string(), pa.int32(), pa.int32(), pa.int64())
_COORDINATES = pa.schema(list(zip((*_PLACE, "offset"), _TYPES, strict=True)))


def open_parquet(uri: str) -> pq.ParquetFile:
    """Open a file as Spark names it: `file:/…` and bare paths locally, any other scheme through Arrow's filesystems.

    Raises OSError (FileNotFoundError included) when this worker cannot open it.
    """
    parsed = urlparse(uri)
    if parsed.scheme in ("", "file"):
        return pq.ParquetFile(_local(uri), memory_map=True)
    if parsed.scheme == "dbfs" and parsed.path.startswith("/Volumes/"):
        return pq.ParquetFile(_local(uri))
    filesystem, path = fs.FileSystem.from_uri(uri)
    return pq.ParquetFile(filesystem.open_input_file(path))


def ranges_of_files(paths: Sequence[str]) -> list[list[StagedRange]]:
    """What local files of the stage hold, file by file: a range for each partition and generation. Reads coordinates,
    never the payload. Raises OSError."""
    parts = [_coordinates(_local(path)) for path in paths]
    files = np.repeat(np.arange(len(parts)), [part.num_rows for part in parts])
    # The empty one: files of before there were generations lack the column.
    rows = pa.concat_tables([_COORDINATES.empty_table(), *parts], promote_options="default")
    generations = pc.fill_null(rows["generation"], 0)
    rows = rows.set_column(rows.schema.get_field_index("generation"), "generation", generations)
    held = rows.append_column("file", pa.array(files)).group_by(["file", *_PLACE], use_threads=False)
    found: list[list[StagedRange]] = [[] for _ in paths]
    columns = held.aggregate([("offset", how) for how in ("min", "max", "count")]).to_pydict().values()
    for file, cluster, topic, partition, generation, first, last, count in zip(*columns, strict=True):
        found[file].append(StagedRange(cluster, topic, partition, generation, first, last, count))
    return found


def _coordinates(path: str) -> pa.Table:
    # Python's mmap instead of Arrow's: for small reads of many files it takes half the CPU time. It is closed with the
    # last buffer that refers to it.
    with open(path, "rb") as opened:
        mapped = pa.py_buffer(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
    return pq.ParquetFile(pa.BufferReader(mapped)).read(columns=_COORDINATES.names, use_threads=False)


def _local(uri: str) -> str:
    return unquote(urlparse(uri).path)
