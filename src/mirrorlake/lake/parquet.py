"""Opens a table's Parquet files by its names for them, and finds the offsets in the stage's."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

from mirrorlake.lake.arrow_values import fill_null, int64
from mirrorlake.lake.place import PARQUET, Place, place_of
from mirrorlake.offsets.partition_ranges import StagedRange

#: The columns that an offset is counted within.
PLACE = ("source_cluster", "topic", "partition", "generation")
#: The most ranges in a file's statistics: more make a commit large, and are read from the file.
_TOLD_RANGES = 200
_TYPES = (pa.string(), pa.string(), pa.int32(), pa.int32(), pa.int64())
_COORDINATES = pa.schema(list(zip((*PLACE, "offset"), _TYPES, strict=True)))

#: How files of `records` are written: columns of few different values, which alone get a
#: dictionary, and those that a commit has statistics of.
REPEATED = tuple(
    """
    source_cluster topic partition timestamp_type landed_at batch_id generation batch_end
    open_ends
    """.split()
)
KEYS = ("source_cluster", "topic", "partition", "offset", "batch_id", "generation")
#: Columns that are null in nearly all files, with the name of their values in files: where
#: statistics say so, no reader reads them.
RARE = {"timestamp_ms": "timestamp_ms", "header_names": "header_names.list.element"}


def plain_bytes(metadata: pq.FileMetaData) -> int:
    """The bytes of a file's rows before compression."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return sum(int(group.total_byte_size) for group in groups)


def open_parquet(
    uri: str, coded: Sequence[str] = (), storage: Mapping[str, str] | None = None
) -> pq.ParquetFile:
    """Open a file by the name that Spark has for it: `file:/…` and bare paths locally, any other
    scheme through Arrow's filesystems; a file of a lake at a URL with its options
    (`Place.options`).

    Text columns in `coded` come as Arrow's dictionaries, as files mostly have them. Raises OSError
    (FileNotFoundError included) when this worker cannot open it.
    """
    parsed, names = urlparse(uri), list(coded)
    if storage is not None:
        return place_of(uri, storage).open_parquet(read_dictionary=names)
    if parsed.scheme in ("", "file"):
        return pq.ParquetFile(_local(uri), memory_map=True, read_dictionary=names, **PARQUET)
    if parsed.scheme == "dbfs" and parsed.path.startswith("/Volumes/"):
        return pq.ParquetFile(_local(uri), read_dictionary=names, **PARQUET)
    filesystem, path = fs.FileSystem.from_uri(uri)
    return pq.ParquetFile(filesystem.open_input_file(path), read_dictionary=names, **PARQUET)


def ranges_of_files(
    files: Sequence[Place], source_cluster: str | None = None, generation: int | None = None
) -> list[list[StagedRange]]:
    """What files of the stage hold, file by file: a range for each partition and generation.

    Reads coordinates, never the payload. A source cluster or generation that is given is the same
    in all rows of all files, and is not read. Raises OSError.
    """
    constants = {"source_cluster": source_cluster, "generation": generation}
    wanted = pa.schema([field for field in _COORDINATES if constants.get(field.name) is None])
    parts = [file.open_parquet().read(columns=wanted.names, use_threads=False) for file in files]
    numbers = np.repeat(np.arange(len(parts)), [part.num_rows for part in parts])
    # The empty table adds a column that files from before generations lack.
    rows = pa.concat_tables([wanted.empty_table(), *parts], promote_options="default")
    if generation is None:
        rows = _with_generations(rows)
    keys = ["file", *(name for name in wanted.names if name != "offset")]
    grouped = rows.append_column(
        "file", pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])
    ).group_by(keys, use_threads=False)
    columns = grouped.aggregate([("offset", how) for how in ("min", "max", "count")]).to_pydict()
    columns |= {
        name: [value] * len(columns["file"])
        for name, value in constants.items()
        if value is not None
    }
    by_file: list[list[StagedRange]] = [[] for _ in files]
    ranges = map(
        StagedRange,
        *(columns[name] for name in (*PLACE, "offset_min", "offset_max", "offset_count")),
    )
    for file, staged_range in zip(columns["file"], ranges, strict=True):
        by_file[file].append(staged_range)
    return by_file


def ranges_of_rows(rows: pa.Table) -> Iterator[StagedRange]:
    """The ranges of rows of the stage: one for each partition and generation."""
    grouped = _with_generations(rows.select(_COORDINATES.names)).group_by(list(PLACE))
    columns = grouped.aggregate([("offset", how) for how in ("min", "max", "count")]).to_pydict()
    return map(
        StagedRange,
        *(columns[name] for name in (*PLACE, "offset_min", "offset_max", "offset_count")),
    )


def _with_generations(rows: pa.Table) -> pa.Table:
    """Rows with the generation that an earlier version left out: it was the first one."""
    generations = fill_null(rows["generation"], int64(0))
    return rows.set_column(rows.schema.get_field_index("generation"), "generation", generations)


def stated_ranges(ranges: Collection[Sequence[object]]) -> dict[str, object]:
    """The ranges of a file for its commit, each the fields of `StagedRange`, beside Delta's own
    statistics: a reader of the log need not open the file (`lake/stage_sources.py`)."""
    return {"ranges": list(ranges)} if 0 < len(ranges) <= _TOLD_RANGES else {}


def _local(uri: str) -> str:
    return unquote(urlparse(uri).path)
