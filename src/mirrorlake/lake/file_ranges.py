"""Which ranges of offsets the files of the stage hold: by the statistics of the log, or, where
these do not say it, by what is read of the files themselves."""

import json
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.lake.arrow_values import FALSE, fill_null, int64, int64s
from mirrorlake.lake.parquet import PLACE, ranges_of_files
from mirrorlake.lake.place import Place
from mirrorlake.offsets.partition_ranges import StagedRange

logger = logging.getLogger(__name__)

#: Statistics of text are cut to 32 characters in Delta's log: two topics may look the same from
#: there on.
_EXACT_TEXT = 31
#: Files that one thread reads in one go.
_AT_A_TIME = 250


def ranges_read(
    files: Sequence[Place],
    counts: Sequence[int | None],
    constants: tuple[str | None, int | None] = (None, None),
) -> Iterator[list[StagedRange]]:
    """What files hold, one after another, of so many records each by the log, that have a source
    cluster and a generation in common where these are given: while one part is taken over, a thread
    reads the next one."""
    read = _read(files, constants)
    for file, count in zip(files, counts, strict=True):
        yield _as_landed(str(file), next(read), count)


def _as_landed(path: str, ranges: list[StagedRange], count: int | None) -> list[StagedRange]:
    """Ranges as they were before a file lost records that the log says it has. Of which partition
    they were is not known: so each range counts them, and what has gaps is not taken for whole by
    its reader."""
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
    """What files hold, one after another: while one part is taken over, a thread reads the next
    one."""
    parts = [files[start : start + _AT_A_TIME] for start in range(0, len(files), _AT_A_TIME)]
    with ThreadPoolExecutor(1) as reader:  # a second one would only wait for the interpreter's lock
        ahead = [reader.submit(ranges_of_files, part, *constants) for part in parts[:1]]
        for part in [*parts[1:], ()]:
            ahead.append(reader.submit(ranges_of_files, part, *constants))
            yield from ahead.pop(0).result()


def constants_of(files: pa.Table) -> tuple[str | None, int | None]:
    """The source cluster and the generation that all rows of some files have, by the log's
    statistics; None where they have several, or it is not known."""
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


def count_of(stats: str) -> int | None:
    """How many records a file has by its statistics."""
    return json.loads(stats).get("numRecords") if stats else None


def ranges_from_commit(stats: str) -> list[StagedRange] | None:
    """What a commit's statistics say of a file with one partition; None where the file itself has
    to be asked."""
    if not stats:
        return None
    statistics = json.loads(stats)
    if "ranges" in statistics:  # by whom we wrote it (landing/stage_file.py)
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
    """The same for a snapshot: by the number of the row."""
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
