"""The young end of `records` kept small: many files of a few records become one, in order, while flows read them.

Neither delta-rs nor Spark keeps the order of offsets when it compacts, and a flow that reads a file out of order has to
sort. So the rows are put in order here, and the commit is written here: one `add`, the `remove`s, no change of data
(https://github.com/delta-io/delta/blob/master/PROTOCOL.md). The files that it replaces stay, for those who are
reading them, until somebody deletes them (run/upkeep.py, `maintain`).
"""

import json
import os
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mirrorlake.lake.definitions import whole
from mirrorlake.lake.delta_log import DeltaLog

#: A file below this size is a small one, bytes; so much of them is made one file at once.
SMALL_FILE, AT_ONCE = 4 << 20, 32 << 20
_ROW_GROUP = 100_000
_ORDER = [(name, "ascending") for name in ("source_cluster", "topic", "generation", "partition", "offset")]
_KEYS = ("source_cluster", "topic", "partition", "offset", "batch_id", "generation")


class YoungFiles:
    """Compacts the table `records` of one lake. For one thread."""

    def __init__(self, directory: Path) -> None:
        self._table = directory / "records"
        self._log = DeltaLog(self._table)

    def compact(self, least: int = 2) -> list[Path]:
        """Make one file of the small ones where there are at least so many; returns those that were replaced, which are
        no part of the table any more and still there."""
        version, files = self._log.snapshot()
        small = files.filter(pc.less(files["size_bytes"], SMALL_FILE)).sort_by(
            [("modification_time", "ascending"), ("path", "ascending")]
        )
        if small.num_rows < least:
            return []
        sums = pc.cumulative_sum(small["size_bytes"])
        chosen = small.slice(0, max(2, pc.sum(pc.less_equal(sums, AT_ONCE)).as_py()))
        paths = chosen["path"].to_pylist()
        if not self._replace(version, paths, chosen["size_bytes"].to_pylist()):
            return []
        return [self._table / path for path in paths]

    def _replace(self, version: int, paths: Sequence[str], sizes: Sequence[int]) -> bool:
        """Write the one file and commit it; False where another commit took one of the files away."""
        # Files that an earlier version wrote lack columns.
        read = (pq.read_table(self._table / path, partitioning=None) for path in paths)
        rows = pa.concat_tables(whole("records", part) for part in read).sort_by(_ORDER)
        name = f"part-00000-{uuid.uuid4()}-c000.zstd.parquet"
        pq.write_table(rows, self._table / name, compression="zstd", compression_level=1, row_group_size=_ROW_GROUP)
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
            remove = {"path": path, "deletionTimestamp": now, "dataChange": False, "extendedFileMetadata": True}
            actions.append({"remove": {**remove, "partitionValues": {}, "size": size}})
        done = self._commit(version, set(paths), "\n".join(json.dumps(action) for action in actions) + "\n")
        if not done:
            (self._table / name).unlink()
        return done

    def _commit(self, version: int, replaced: set[str], text: str) -> bool:
        """Be the next commit behind a version, and behind all that came meanwhile and left these files alone."""
        log = self._table / "_delta_log"
        draft = log / f".{uuid.uuid4()}.tmp"
        draft.write_text(text, encoding="utf-8")
        try:
            while True:
                version += 1
                try:
                    os.link(draft, log / f"{version:020d}.json")  # fails where there is one: commits are exclusive
                    return True
                except FileExistsError:
                    came = self._log.commit(version)
                    if came is None or not replaced.isdisjoint(came.removed) or came.changes_table:
                        return False
        finally:
            draft.unlink()


def _statistics(rows: pa.Table) -> dict[str, Any]:
    sides = {name: pc.min_max(rows[name]).as_py() for name in _KEYS}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: side["min"] for name, side in sides.items() if side["min"] is not None},
        "maxValues": {name: side["max"] for name, side in sides.items() if side["max"] is not None},
        "nullCount": {name: rows[name].null_count for name in _KEYS},
    }
