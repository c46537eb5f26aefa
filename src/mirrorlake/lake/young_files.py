"""Keeps the young end of `records` small: joins many files of a few records into one, in order,
while flows read them.

Neither delta-rs nor Spark keeps the order of offsets when it compacts, and a flow that reads a file
out of order has to sort. So the rows are sorted here, and the commit is our own. The replaced files
stay for their readers until they are deleted (run/upkeep.py, `maintain`).
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from mirrorlake.lake.arrow_values import table_of
from mirrorlake.lake.delta_log import DeltaLog, layout_of, rewrite_barrier
from mirrorlake.lake.layout import in_layout
from mirrorlake.lake.own_commits import NewFile, keys_of, replace_files
from mirrorlake.lake.parquet import plain_bytes
from mirrorlake.lake.place import Place
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.merging import mergeable

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """A file is small if it has fewer than `small_file` bytes and its rows fewer than `small_rows`
    bytes in memory: few bytes in a file may be many rows, logs shrink to a thirtieth. `at_once`
    bytes of rows are sorted at once, which takes three times as much memory."""

    small_file: int
    small_rows: int
    at_once: int


#: Beside running flows, and in `maintain`.
YOUNG = Limits(4 << 20, 16 << 20, 64 << 20)
ALL = Limits(64 << 20, 128 << 20, 256 << 20)
#: What a row of `records` takes in memory beyond its size in a file, where one text stands for many
#: rows; bytes.
_ROW_BYTES = 100
_ORDER = [
    (name, "ascending") for name in ("source_cluster", "topic", "generation", "partition", "offset")
]


class YoungFiles:
    """Compacts the table `records` of one lake, within some limits. For one thread."""

    def __init__(
        self,
        place: Place,
        stage: StageFiles,
        limits: Limits = YOUNG,
        opened: Callable[[], DeltaTable] | None = None,
    ) -> None:
        """`opened` returns the table as of now, for a caller that has it open already."""
        self._stage = stage
        self._limits = limits
        self._table = place / "records"
        self._log = DeltaLog(self._table)
        self._opened = opened or self._log.opened
        self._row_bytes: dict[str, int] = {}  # of small files, by their paths
        self._barred: str | None = None  # as last logged

    def compact(self, least: int = 2) -> list[Place]:
        """Join the small files into one, if there are at least `least`. Returns the replaced files,
        which no longer belong to the table but still exist."""
        table = self._opened()
        barred = rewrite_barrier(table)
        if barred != self._barred and barred is not None:
            logger.warning(
                "table records: small files are left to mirrorlake maintain, since %s", barred
            )
        self._barred = barred
        if barred is not None:
            return []
        files = table_of(table.get_add_actions(flatten=True))
        small = files.filter(pc.less(files["size_bytes"], self._limits.small_file)).sort_by(
            [("modification_time", "ascending"), ("path", "ascending")]
        )
        sizes = dict(zip(small["path"].to_pylist(), small["size_bytes"].to_pylist(), strict=True))
        chosen = self._chosen(sizes) if len(sizes) >= least else []
        if len(chosen) < 2 or not self._replace(table, chosen, [sizes[path] for path in chosen]):
            return []
        return [self._table / path for path in chosen]

    def _chosen(self, small: Collection[str]) -> list[str]:
        """The first small files, to be joined: as many as are sorted at once, without those that
        have many bytes of rows, and such that no reader then has to sort them with other files."""
        known = self._row_bytes
        self._row_bytes = {path: known.get(path) or self._in_memory(path) for path in small}
        fitting = {
            str(self._table / path): size
            for path, size in self._row_bytes.items()
            if size < self._limits.small_rows
        }
        with self._stage.reading() as index:
            return [
                self._table.below(path) for path in mergeable(index, fitting, self._limits.at_once)
            ]

    def _in_memory(self, path: str) -> int:
        """About how many bytes a file's rows are in memory."""
        with (self._table / path).open_parquet() as file:
            metadata = file.metadata
        return plain_bytes(metadata) + _ROW_BYTES * int(metadata.num_rows)

    def _replace(self, table: DeltaTable, paths: Sequence[str], sizes: Sequence[int]) -> bool:
        """Write the joined file and commit it; False where another commit removed a file."""
        # Files of an earlier version lack columns; those of a newer one have unknown ones.
        layout = layout_of(table)
        read = ((self._table / path).open_parquet().read() for path in paths)
        rows = pa.concat_tables(in_layout(part, layout) for part in read).sort_by(_ORDER)
        file = NewFile(self._table, layout, keys_of(table))
        file.write(rows)
        file.close()
        removed = dict(zip(paths, sizes, strict=True))
        return replace_files(self._log, table.version(), removed, [file]) is not None
