"""The young end of `records` kept small: many files of a few records become one, in order, while
flows read them.

Neither delta-rs nor Spark keeps the order of offsets when it compacts, and a flow that reads a file
out of order has to sort. So the rows are put in order here, and the commit is written here: one
`add`, the `remove`s, no change of data (https://github.com/delta-io/delta/blob/master/PROTOCOL.md).
The files that it replaces stay, for those who are reading them, until they are deleted
(run/upkeep.py, `maintain`).
"""

import json
import logging
import os
import time
import uuid
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from mirrorlake.lake.arrow_values import table_of
from mirrorlake.lake.delta_log import DeltaLog, why_not_by_hand
from mirrorlake.lake.parquet import KEYS, REPEATED
from mirrorlake.lake.path_tables import in_layout
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.merging import mergeable

logger = logging.getLogger(__name__)

#: A file below this size is a small one, bytes, if its rows are not many more in memory; so many
#: bytes of rows are put in order at once, which takes three times as much. Few bytes in a file may
#: be many rows: logs shrink to a thirtieth.
SMALL_FILE, SMALL_ROWS, AT_ONCE = 4 << 20, 16 << 20, 64 << 20
#: What a row of `records` takes in memory beside what a file says of it, where one text stands for
#: many rows, bytes.
_ROW_BYTES = 100
_ROW_GROUP = 100_000
_ORDER = [
    (name, "ascending") for name in ("source_cluster", "topic", "generation", "partition", "offset")
]


class YoungFiles:
    """Compacts the table `records` of one lake. For one thread."""

    def __init__(self, directory: Path, stage: StageFiles) -> None:
        self._stage = stage
        self._table = directory / "records"
        self._log = DeltaLog(self._table)
        self._row_bytes: dict[str, int] = {}  # of small files, by their paths
        self._barred: str | None = None  # as logged

    def compact(self, least: int = 2) -> list[Path]:
        """Make one file of the small ones where there are at least so many; returns those that were
        replaced, which are no part of the table any more and still there."""
        table = self._log.opened()
        barred = why_not_by_hand(table)
        if barred != self._barred and barred is not None:
            logger.warning(
                "table records: small files are left to mirrorlake maintain, since %s", barred
            )
        self._barred = barred
        if barred is not None:
            return []
        files = table_of(table.get_add_actions(flatten=True))
        small = files.filter(pc.less(files["size_bytes"], SMALL_FILE)).sort_by(
            [("modification_time", "ascending"), ("path", "ascending")]
        )
        sizes = dict(zip(small["path"].to_pylist(), small["size_bytes"].to_pylist(), strict=True))
        chosen = self._chosen(sizes) if len(sizes) >= least else []
        if len(chosen) < 2 or not self._replace(table, chosen, [sizes[path] for path in chosen]):
            return []
        return [self._table / path for path in chosen]

    def _chosen(self, small: Collection[str]) -> list[str]:
        """The first of some files that become one: as many as are put in order at once, without
        those that have many bytes of rows, and such that no reader has to sort what they are read
        with."""
        known = self._row_bytes
        self._row_bytes = {path: known.get(path) or self._in_memory(path) for path in small}
        fitting = {
            str(self._table / path): size
            for path, size in self._row_bytes.items()
            if size < SMALL_ROWS
        }
        with self._stage.reading() as index:
            return [
                str(Path(path).relative_to(self._table))
                for path in mergeable(index, fitting, AT_ONCE)
            ]

    def _in_memory(self, path: str) -> int:
        """About how many bytes a file's rows are in memory."""
        metadata = pq.read_metadata(self._table / path)
        groups = (
            metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups)
        )
        return int(sum(groups) + _ROW_BYTES * metadata.num_rows)

    def _replace(self, table: DeltaTable, paths: Sequence[str], sizes: Sequence[int]) -> bool:
        """Write the one file and commit it; False where another commit took one of the files
        away."""
        # Files that an earlier version wrote lack columns, and those of a newer one have more than
        # are known here.
        layout = pa.schema(table.schema().to_arrow())
        read = (pq.read_table(self._table / path, partitioning=None) for path in paths)
        rows = pa.concat_tables(in_layout(part, layout) for part in read).sort_by(_ORDER)
        name = f"part-00000-{uuid.uuid4()}-c000.zstd.parquet"
        pq.write_table(
            rows,
            self._table / name,
            compression="zstd",
            compression_level=1,
            row_group_size=_ROW_GROUP,
            use_dictionary=list(
                REPEATED
            ),  # as what is landed: one of values would hide how much they are in memory
        )
        now = time.time_ns() // 1_000_000
        actions: list[dict[str, Any]] = [
            {
                "commitInfo": {
                    "timestamp": now,
                    "operation": "OPTIMIZE",
                    "operationParameters": {},
                    "isBlindAppend": False,
                    "engineInfo": "mirrorlake",
                }
            },
            {
                "add": {
                    "path": name,
                    "partitionValues": {},
                    "size": (self._table / name).stat().st_size,
                    "modificationTime": now,
                    "dataChange": False,
                    "stats": json.dumps(_statistics(rows)),
                }
            },
        ]
        for path, size in zip(paths, sizes, strict=True):
            remove = {
                "path": path,
                "deletionTimestamp": now,
                "dataChange": False,
                "extendedFileMetadata": True,
            }
            actions.append({"remove": {**remove, "partitionValues": {}, "size": size}})
        done = self._commit(
            table.version(), set(paths), "\n".join(json.dumps(action) for action in actions) + "\n"
        )
        if not done:
            (self._table / name).unlink()
        return done

    def _commit(self, version: int, replaced: set[str], text: str) -> bool:
        """Be the next commit behind a version, and behind all that came meanwhile and left these
        files alone."""
        log = self._table / "_delta_log"
        draft = log / f".{uuid.uuid4()}.tmp"
        draft.write_text(text, encoding="utf-8")
        try:
            while True:
                version += 1
                try:
                    os.link(
                        draft, log / f"{version:020d}.json"
                    )  # fails where there is one: commits are exclusive
                    return True
                except FileExistsError:
                    came = self._log.commit(version)
                    if came is None or not replaced.isdisjoint(came.removed) or came.changes_table:
                        return False
        finally:
            draft.unlink()


def _statistics(rows: pa.Table) -> dict[str, Any]:
    sides = {name: pc.min_max(rows[name]).as_py() for name in KEYS}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: side["min"] for name, side in sides.items() if side["min"] is not None},
        "maxValues": {name: side["max"] for name, side in sides.items() if side["max"] is not None},
        "nullCount": {name: rows[name].null_count for name in KEYS},
    }
