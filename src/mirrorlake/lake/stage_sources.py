"""Where the index of the stage is built and kept up from: the log and files that this process
reads, or what Spark or a catalog reports.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from mirrorlake.errors import LakeError, first_line
from mirrorlake.lake.arrow_values import int64s
from mirrorlake.lake.delta_log import (
    BARRED_FEATURES,
    Commit,
    DeltaLog,
    features_of,
    version_and_files,
)
from mirrorlake.lake.file_ranges import (
    constants_of,
    ranges_from_commit,
    ranges_from_statistics,
    ranges_read,
    statistics_of,
)
from mirrorlake.lake.index_copy import IndexCopy
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.place import Place
from mirrorlake.lake.reader import Reader
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.stage_index import StageIndex

logger = logging.getLogger(__name__)

#: After so many files the copy is rewritten while the index is built.
_AT_ONCE = 20_000
#: How often, in seconds, a table that only Spark opens is checked for features with which its files
#: are not the whole table: any client may add one, and a check costs a statement.
FEATURES_SECONDS = 60.0


class SparkAlone(Exception):
    """A catalog's own table got a feature: its log and files no longer show what it holds."""


class StageSource(ABC):
    """Builds an index, and keeps it up."""

    #: Whether `follow` applies what commits removed, as well as what they added.
    follows_removals = False

    @abstractmethod
    def build(self, index: StageIndex) -> StageIndex:
        """Bring an index, whatever it holds, to the newest version of the table."""

    @abstractmethod
    def follow(self, index: StageIndex) -> None:
        """Apply the commits behind the index's version."""

    def is_its_files(self) -> bool:
        """Whether reading the table's files is still reading the table, as far as is known."""
        return True


class LocalStage(StageSource):
    """The stage at a place that this process can read. `ours` stays readable, since only we commit
    to it; any client may alter a catalog's own table. Raises SparkAlone where one did."""

    follows_removals = True

    def __init__(
        self, directory: Place, checkpoints: Path, ours: bool, reader: Reader | None = None
    ) -> None:
        """`reader` may have the table open already, so that an answer does not open it twice."""
        self._ours = ours
        self._reader = reader
        self._log = DeltaLog(directory / "records", mends=ours)
        self._copy = IndexCopy(checkpoints / "stage_index.arrow")

    def build(self, index: StageIndex) -> StageIndex:
        """Bring an index to the newest snapshot, reading only files that it does not know."""
        self._check()
        if not index.paths():
            self._copy.fill(index)
        reader, self._reader = self._reader, None
        held = None if reader is None else reader.held("records")
        version, files = self._log.snapshot() if held is None else version_and_files(held.delta)
        files = files.sort_by([("modification_time", "ascending"), ("path", "ascending")])
        if "max.batch_id" in files.column_names:
            index.note_batch(pc.max(files["max.batch_id"]).as_py())
        names = files["path"].to_pylist()
        paths = [f"{self._log.table}/{name}" for name in names]
        gone = set(index.paths()) - set(paths)
        index.deletions += bool(gone)
        index.apply((), gone, index.version)
        fresh = [at for at, path in enumerate(paths) if path not in index.numbers()]
        by_statistics = ranges_from_statistics(files.take(int64s(fresh)))
        unknown = {names[number]: at for at, number in enumerate(fresh) if at not in by_statistics}
        by_statistics |= _ranges_from_log(self._log if held is None else held.log, unknown, version)
        left = [number for at, number in enumerate(fresh) if at not in by_statistics]
        constants = constants_of(files.take(int64s(left)))
        counts: list[int | None] = [None] * len(left)
        if "num_records" in files.column_names:
            counts = files["num_records"].take(int64s(left)).to_pylist()
        unread = ranges_read(
            [self._log.table / names[number] for number in left], counts, constants
        )
        del files, names  # they hold more about every file than the index keeps
        pa.default_memory_pool().release_unused()
        for start in range(0, len(fresh), _AT_ONCE):
            picked = range(start, min(start + _AT_ONCE, len(fresh)))
            index.apply(
                ((paths[fresh[at]], by_statistics.get(at) or next(unread)) for at in picked),
                (),
                index.version,
            )
            if any(at not in by_statistics for at in picked):
                self._copy.write(index)
        index.apply((), (), version)  # only now: `follow` must not go on from an incomplete index
        read = len(fresh) - len(by_statistics)
        logger.info(
            "index of the stage: %d files at version %d, %d of them read", len(paths), version, read
        )
        if held is not None:  # the reader may have opened it earlier
            self.follow(index)
        return index

    def follow(self, index: StageIndex) -> None:
        try:
            while (commit := self._log.commit(index.version + 1)) is not None:
                self._take(index, commit)
        except FileNotFoundError:
            # The log was cleaned up meanwhile, or files were rewritten: the snapshot knows.
            self.build(index)

    def _check(self) -> None:
        if self._ours:
            return
        try:
            barred = BARRED_FEATURES & features_of(self._log.opened().protocol())
        except DeltaError as error:
            raise SparkAlone(f"table records cannot be opened ({first_line(error)})") from error
        if barred:
            raise SparkAlone(f"table records has {', '.join(sorted(barred))}")

    def _take(self, index: StageIndex, commit: Commit) -> None:
        if commit.changes_table:
            self._check()
        stated = {path: statistics_of(text) for path, text in commit.added.items()}
        known = {path: ranges_from_commit(statistics) for path, statistics in stated.items()}
        for statistics in stated.values():
            index.note_batch(statistics.get("maxValues", {}).get("batch_id"))
        unread = [path for path, ranges in known.items() if ranges is None]
        read = ranges_read(
            [self._log.table / path for path in unread],
            [stated[path].get("numRecords") for path in unread],
        )
        added = [
            (str(self._log.table / path), next(read) if ranges is None else ranges)
            for path, ranges in known.items()
        ]
        removed = [str(self._log.table / path) for path in commit.removed]
        index.deletions += commit.deletes
        index.apply(added, removed, index.version + 1)
        self._copy.note(index, len(added))


def _ranges_from_log(
    log: DeltaLog, files: Mapping[str, int], version: int
) -> dict[int, list[StagedRange]]:
    """The log's ranges of files of several partitions, by file number, unknown to delta-rs."""
    statistics = log.statistics(version) if files else ()
    ranges = (
        (files[path], ranges_from_commit(statistics_of(text)))
        for path, text in statistics
        if path in files
    )
    return {number: of_file for number, of_file in ranges if of_file is not None}


class SparkStage(StageSource):
    """The stage in a catalog, or wherever only Spark can open it."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._looked_at = time.monotonic()  # the flow's producer has just checked

    def is_its_files(self) -> bool:
        """Whether workers may read the files as the table; checked at most once a minute."""
        if time.monotonic() - self._looked_at < FEATURES_SECONDS:
            return True
        readable = readable_by_files(self._lake)
        if readable:
            self._looked_at = time.monotonic()
        else:
            logger.warning("files of the stage alone no longer say what it holds; Spark reads them")
        return readable

    def build(self, index: StageIndex) -> StageIndex:
        """Bring an index to the newest version, from the coordinates of the whole table."""
        version = self._lake.version_of("records")
        from mirrorlake.lake import stage  # which imports Spark

        # Before the index is emptied: an empty one at the newest version means that none is staged.
        held = stage.ranges_of_table(self._lake, version, index.note_batch)
        index.deletions += 1
        index.apply((), set(index.paths()), index.version)
        index.apply(held, (), version)
        return index

    def follow(self, index: StageIndex) -> None:
        """Apply what commits behind the index's version added. A file that they removed stays in
        the index until a reader finds it gone; the index still says which offsets exist."""
        from mirrorlake.lake import stage
        from mirrorlake.spark.failures import SPARK_FAILURES

        version = self._lake.version_of("records")
        if version < index.version:
            raise LakeError(
                f"table records of the lake at {self._lake.place} was deleted and made again while "
                "this process read it; start `mirrorlake run` again"
            )
        if version == index.version:
            return
        try:
            added = stage.ranges_of_commits(self._lake, index.version, version, index.note_batch)
        except SPARK_FAILURES:
            logger.info(
                "commits of the stage behind version %d are gone; reading it as a whole",
                index.version,
            )
            self.build(index)
            return
        index.apply(added, (), version)


class CatalogStage(StageSource):
    """The stage in a catalog, for a caller that only asks what is staged now."""

    def __init__(self, lake: Reader) -> None:
        self._lake = lake

    def build(self, index: StageIndex) -> StageIndex:
        """Bring an index to what is staged now, from the coordinates of the whole table."""
        by_path: dict[str, list[StagedRange]] = {}
        for row in self._lake.query_rows("staged_ranges"):
            path = row.pop("path")
            by_path.setdefault(path, []).append(StagedRange(**row))
        index.apply(by_path.items(), set(index.paths()), index.version)
        return index

    def follow(self, index: StageIndex) -> None:
        """Build it again: a caller that asks now and then needs no commits."""
        self.build(index)


def readable_by_files(lake: Lake) -> bool:
    """Whether the table's files alone are the table: no deletion vectors, no column mapping."""
    return BARRED_FEATURES.isdisjoint(lake.features("records"))
