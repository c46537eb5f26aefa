"""Opening the Parquet files of a table as the table names them, and what offsets files of the stage hold."""

from collections.abc import Sequence
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq

from mirrorlake.core.stage_index import StagedRange

_PLACE = ("source_cluster", "topic", "partition", "generation")
_TYPES = (pa.string(), pa.string(), pa.int32(), pa.int32(), pa.int64())
_COORDINATES = pa.schema(list(zip((*_PLACE, "offset"), _TYPES, strict=True)))
#: The name under which a scan gives the file of a row.
_FILE = "__filename"


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
    if not paths:
        return []
    names = [_local(path) for path in paths]
    # Read ahead of what is needed it would take twice as long.
    options = ds.ParquetFragmentScanOptions(pre_buffer=False)
    files = ds.dataset(names, format="parquet", schema=_COORDINATES)
    rows = files.to_table([*_COORDINATES.names, _FILE], use_threads=False, fragment_scan_options=options)
    at = rows.schema.get_field_index("generation")  # null in rows of before there were any
    rows = rows.set_column(at, "generation", pc.fill_null(rows["generation"], 0))
    held = rows.group_by([_FILE, *_PLACE], use_threads=False).aggregate(
        [("offset", how) for how in ("min", "max", "count")]
    )
    found: dict[str, list[StagedRange]] = {name: [] for name in names}
    for name, cluster, topic, partition, generation, first, last, count in zip(*held.to_pydict().values(), strict=True):
        found[name].append(StagedRange(cluster, topic, partition, generation, first, last, count))
    return [found[name] for name in names]


def _local(uri: str) -> str:
    return unquote(urlparse(uri).path)
