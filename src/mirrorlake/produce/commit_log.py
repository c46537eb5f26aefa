"""Following the stage's commits without a Spark job: for lakes whose files the driver itself can open.

A look at an idle stage costs one failed `open`, and a small commit some milliseconds, where a query over the change
feed costs half a second. Only what the Delta protocol says of append-only tables is used: commit N is
`_delta_log/<N, 20 digits>.json`, one action a line, and an `add` with `dataChange` names a file that brought rows.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mirrorlake.core.batch import FileRange
from mirrorlake.lake.stage import Selected
from mirrorlake.produce.stage_files import open_parquet

_PLACE = ["source_cluster", "topic", "partition", "generation"]
_COORDINATES = [*_PLACE, "offset"]


class CommitLog:
    """The commits of one Delta table in a local directory."""

    def __init__(self, table: Path) -> None:
        self._table = table

    def files_of(self, version: int) -> list[str] | None:
        """The files whose rows commit `version` brought; None while there is no such commit.

        A commit that also takes files away (OPTIMIZE, a delete by retention) brings none: it holds rows of other files.
        Raises FileNotFoundError when the commit is forgotten, since the log is kept for some days only.
        """
        try:
            text = (self._table / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            if self._is_forgotten(version):
                raise
            return None
        actions = [json.loads(line) for line in text.splitlines() if line]
        if any("remove" in action for action in actions):
            return []
        adds = (action["add"] for action in actions if "add" in action)
        return [str(self._table / unquote(add["path"])) for add in adds if add["dataChange"]]

    def _is_forgotten(self, version: int) -> bool:
        """Whether a commit that is not there was there once: the newest checkpoint of the log is behind it."""
        try:
            text = (self._table / "_delta_log" / "_last_checkpoint").read_text(encoding="utf-8")
        except FileNotFoundError:
            return False
        return int(json.loads(text)["version"]) > version

    def new_ranges(
        self, selected: Selected, after_version: int, up_to_version: int | None, max_records: int
    ) -> tuple[list[FileRange], int]:
        """What the commits behind `after_version` brought of a flow, whole commits up to about `max_records`.

        Returns the ranges and the newest version looked at, which is `after_version` when there is nothing new.
        """
        found: list[FileRange] = []
        version = after_version
        while (up_to_version is None or version < up_to_version) and _count(found) < max_records:
            files = self.files_of(version + 1)
            if files is None:
                break
            version += 1
            for path in files:
                found.extend(ranges_of_file(path, version, selected))
        return found, version


def _count(ranges: Iterable[FileRange]) -> int:
    return sum(item.record_count for item in ranges)


def ranges_of_file(path: str, version: int, selected: Selected) -> list[FileRange]:
    """What a file holds of a flow, a row per partition. Reads footers, and the coordinates (never the payload) of those
    row groups that hold more than one partition."""
    wanted = re.compile(selected.pattern)
    held: dict[tuple[str, int, int], tuple[int, int, int]] = {}
    with open_parquet(path) as file:
        for group in range(file.num_row_groups):
            for (cluster, topic, partition, generation), first, last, count in _stretches(file, group):
                if cluster != selected.source_cluster or not wanted.fullmatch(topic):
                    continue
                key = (topic, partition, generation)
                low, high, total = held.get(key, (first, last, 0))
                held[key] = (min(low, first), max(high, last), total + count)
    return [
        FileRange(path, version, topic, partition, first, last, count, generation)
        for (topic, partition, generation), (first, last, count) in held.items()
    ]


_Place = tuple[str, str, int, int]


def _stretches(file: pq.ParquetFile, group: int) -> Iterator[tuple[_Place, int, int, int]]:
    """((cluster, topic, partition, generation), first, last, count) of each stretch of one partition in a row group."""
    metadata = file.metadata.row_group(group)
    bounds = {}
    for index in range(metadata.num_columns):
        column = metadata.column(index)
        if column.path_in_schema in _COORDINATES and column.statistics is not None and column.statistics.has_min_max:
            bounds[column.path_in_schema] = (column.statistics.min, column.statistics.max)
    if len(bounds) == len(_COORDINATES) and all(bounds[name][0] == bounds[name][1] for name in _PLACE):
        cluster, topic, partition, generation = (bounds[name][0] for name in _PLACE)
        yield (cluster, topic, partition, generation), bounds["offset"][0], bounds["offset"][1], metadata.num_rows
        return
    yield from _stretches_of_rows(file.read_row_group(group, columns=_COORDINATES, use_threads=False))


def _stretches_of_rows(rows: pa.Table) -> Iterator[tuple[_Place, int, int, int]]:
    rows = rows.combine_chunks()
    codes = [pc.rank(rows[name], tiebreaker="dense").to_numpy() for name in _PLACE]
    changed = np.zeros(max(0, rows.num_rows - 1), dtype=bool)
    for code in codes:
        changed |= code[1:] != code[:-1]
    starts = np.concatenate(([0], np.flatnonzero(changed) + 1))
    ends = np.append(starts[1:], rows.num_rows)
    offsets = rows["offset"].to_numpy()
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        cluster, topic, partition, generation = (rows[name][start].as_py() for name in _PLACE)
        part = offsets[start:end]
        yield (cluster, topic, partition, generation), int(part.min()), int(part.max()), end - start
