"""A copy of the index of the stage on disk, so that a start need not read the footers of files that were read before.

It decides nothing: files of a table never change, a file that it does not know is read, one that is not in the table
any more is left out. So it may be old, missing or damaged.
"""

import logging
import os
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mirrorlake.core.stage_index import StagedRange, StageIndex

logger = logging.getLogger(__name__)

#: The copy is made anew when so many files have come since.
_EVERY_FILES = 1_000
_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("source_cluster", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("generation", pa.int32()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("record_count", pa.int64()),
    ]
)


class IndexCopy:
    """The copy in one file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._since = 0

    def read(self, wanted: Collection[str]) -> dict[str, list[StagedRange]]:
        """The ranges of those files that are wanted and known."""
        try:
            table = pq.read_table(self._file, memory_map=True)
            if table.schema.names != _SCHEMA.names:
                return {}
        except (OSError, pa.ArrowException) as error:
            if not isinstance(error, FileNotFoundError):
                logger.warning("the copy of the stage's index cannot be read (%s); reading the stage's files", error)
            return {}
        table = table.filter(pc.is_in(table["path"], value_set=pa.array(list(wanted), pa.string())))
        found: dict[str, list[StagedRange]] = defaultdict(list)
        for batch in table.to_batches(max_chunksize=65_536):
            columns = [column.to_pylist() for column in batch.columns]
            for path, *values in zip(*columns, strict=True):
                found[path].append(StagedRange(*values))
        return dict(found)

    def note(self, index: StageIndex, files: int) -> None:
        """Count files that came; now and then the copy is made anew."""
        self._since += files
        if self._since >= _EVERY_FILES:
            self.write(index)

    def write(self, index: StageIndex) -> None:
        """Make the copy anew. Where that fails, the next start takes longer."""
        self._since = 0
        fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            with pq.ParquetWriter(fresh, _SCHEMA) as writer:
                rows: list[dict[str, object]] = []
                for path, item in index.rows():
                    rows.append({"path": path, **vars(item)})
                    if len(rows) == 65_536:
                        writer.write_table(pa.Table.from_pylist(rows, _SCHEMA))
                        rows = []
                writer.write_table(pa.Table.from_pylist(rows, _SCHEMA))
            os.replace(fresh, self._file)
        except OSError as error:
            logger.warning("the copy of the stage's index cannot be written (%s)", error)
