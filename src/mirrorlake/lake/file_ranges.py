"""Finds which offsets the files of the stage hold: by the log's statistics, or by the files."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.lake.arrow_values import FALSE, fill_null, int64, int64s
from mirrorlake.lake.parquet import PLACE, ranges_of_files
from mirrorlake.lake.place import Place
from mirrorlake.offsets.partition_ranges import StagedRange

logger = logging.getLogger(__name__)

#: Delta's log cuts statistics of text to 32 characters: two topics may look the same from there on.
_EXACT_TEXT = 31
#: Files that one thread reads in one go.
_AT_A_TIME = 250


def ranges_read(
    files: Sequence[Place],
    counts: Sequence[int | None],
    constants: tuple[str | None, int | None] = (None, None),
) -> Iterator[list[StagedRange]]:
    """The ranges of files, one file after another. `counts` are the records of each file by the
    log; `constants` are the source cluster and the generation that all share, where known. While
    the caller takes one part, a thread reads the next one."""
    read = _read(files, constants)
    for file, count in zip(files, counts, strict=True):
        yield _as_landed(str(file), next(read), count)


def _as_landed(path: str, ranges: list[StagedRange], count: int | None) -> list[StagedRange]:
    """A file's ranges as before it lost records that the log says it has. Their partition is not
    known, so each range counts them, and a reader does not take one with gaps for whole."""
    lacking = (count or 0) - sum(staged_range.record_count for staged_range in ranges)
    if lacking <= 0:
        return ranges
    logger.error("%s lacks %d of the records that the log of the stage says it has", path, lacking)
    return [
        staged_range._replace(record_count=staged_range.record_count + lacking)
        for staged_range in ranges
    ]


def _read(
    files: Sequence[Place], constants: tuple[str | None, int | None]
) -> Iterator[list[StagedRange]]:
    """The ranges of files, one after another; while one is taken, a thread reads the next."""
    parts = [files[start : start + _AT_A_TIME] for start in range(0, len(files), _AT_A_TIME)]
    with ThreadPoolExecutor(1) as reader:  # a second one would only wait for the interpreter's lock
        ahead = [reader.submit(ranges_of_files, part, *constants) for part in parts[:1]]
        for part in [*parts[1:], ()]:
            ahead.append(reader.submit(ranges_of_files, part, *constants))
            yield from ahead.pop(0).result()


def constants_of(files: pa.Table) -> tuple[str | None, int | None]:
    """The source cluster and the generation that all rows of some files share, by the log's
    statistics; None where there are several, or it is not known."""
    values_of_file = []
    for name in ("source_cluster", "generation"):
        sides = [f"{side}.{name}" for side in ("min", "max")]
        if not {*sides, f"null_count.{name}"} <= set(files.column_names) or not files.num_rows:
            return None, None
        values = pc.unique(
            pa.chunked_array([*files[sides[0]].chunks, *files[sides[1]].chunks])
        ).to_pylist()
        nulls = pc.sum(fill_null(files[f"null_count.{name}"], int64(1))).as_py()
        values_of_file.append(values[0] if len(values) == 1 and nulls == 0 else None)
    cluster, generation = values_of_file
    return None if cluster is None or len(cluster) > _EXACT_TEXT else cluster, generation


def statistics_of(text: str) -> Mapping[str, Any]:
    """What a commit states of a file, as `Add.stats` of Delta's protocol has it; {} if nothing."""
    statistics: Mapping[str, Any] = json.loads(text) if text else {}
    return statistics


def ranges_from_commit(statistics: Mapping[str, Any]) -> list[StagedRange] | None:
    """The ranges that a commit's statistics show for a file: those that we stated, or that of a
    single partition; None where the file itself has to be read."""
    if "ranges" in statistics:  # we stated them (landing/stage_file.py)
        return [StagedRange(*values) for values in statistics["ranges"]]
    low, high, nulls = (
        statistics.get(name, {}) for name in ("minValues", "maxValues", "nullCount")
    )
    if any(
        low.get(name) is None or low[name] != high.get(name) or nulls.get(name) for name in PLACE
    ):
        return None
    longest = max(len(low["topic"]), len(low["source_cluster"]))
    if longest > _EXACT_TEXT or "offset" not in low:
        return None
    key = (low["source_cluster"], low["topic"], low["partition"], low["generation"])
    return [StagedRange(*key, low["offset"], high["offset"], statistics["numRecords"])]


def ranges_from_statistics(files: pa.Table) -> dict[int, list[StagedRange]]:
    """As `ranges_from_commit`, for files of a snapshot with a single partition, by row number."""
    needed = [
        "num_records",
        *(f"{side}.{name}" for side in ("min", "max") for name in (*PLACE, "offset")),
    ]
    if not set(needed) <= set(files.column_names):
        return {}
    single = None
    for name in PLACE:
        same = fill_null(pc.equal(files[f"min.{name}"], files[f"max.{name}"]), FALSE)
        if f"null_count.{name}" in files.column_names:
            same = pc.and_(
                same, pc.equal(fill_null(files[f"null_count.{name}"], int64(0)), int64(0))
            )
        single = same if single is None else pc.and_(single, same)
    for name in ("source_cluster", "topic"):
        single = pc.and_(
            single, pc.less_equal(pc.utf8_length(files[f"min.{name}"]), int64(_EXACT_TEXT))
        )
    at = pc.indices_nonzero(fill_null(single, FALSE)).to_pylist()
    picked = files.select(needed).take(int64s(at))
    columns = [
        picked[name].to_pylist()
        for name in (*(f"min.{name}" for name in (*PLACE, "offset")), "max.offset", "num_records")
    ]
    return {
        row: [StagedRange(*values)]
        for row, values in zip(at, zip(*columns, strict=True), strict=True)
    }
