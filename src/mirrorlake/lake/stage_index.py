"""The index of the stage, kept up with commits; all threads share it.

At a path or URL, and for a catalog's own tables on a disk of this host, the driver reads the log
and the coordinates of new files itself; otherwise Spark reports what new commits added
(`lake/stage_sources.py`). The index can be built again from the table's newest snapshot at any
time: nothing depends on it alone.
"""

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mirrorlake.lake.catalog_lake import CatalogLake
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.stage_sources import (
    CatalogStage,
    LocalStage,
    SparkAlone,
    SparkStage,
    StageSource,
)
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.stage_index import StageIndex

logger = logging.getLogger(__name__)


class StageFiles:
    """The stage of one lake, as `produce.ports.Stage`."""

    def __init__(self, lake: Reader) -> None:
        read = _read_by_files(lake)
        place = None if read is None else read.directory
        self._place = place
        #: Whether the files alone are the table, as far as is known; once False, it stays False.
        self.is_its_files = True
        self._lake = lake
        self._use = threading.RLock()
        self._index: StageIndex | None = None
        self._deletions = 0
        self._source: StageSource
        if read is not None and place is not None:
            ours, asks = lake.directory is not None, not isinstance(lake, Lake)
            self._source = LocalStage(place, read.checkpoints, ours, lake if asks else None)
        else:
            self._source = SparkStage(lake) if isinstance(lake, Lake) else CatalogStage(lake)

    @property
    def storage(self) -> Mapping[str, str] | None:
        """How its files are opened now, see `Place.options`."""
        return None if self._place is None else self._place.options

    @contextmanager
    def reading(self) -> Iterator[StageIndex]:
        """The index as of the newest commit, for the duration of the block."""
        with self._use:
            try:
                self._index = self._newest()
            except SparkAlone as error:
                assert isinstance(self._lake, CatalogLake)
                self._lake.stop_using_files()
                logger.warning("the stage is read by Spark from now on: %s", error)
                self._source, self.is_its_files = SparkStage(self._lake), False
                self._place, self._index = None, None
                self._index = self._newest()
            self._deletions = self._index.deletions
            yield self._index

    def _newest(self) -> StageIndex:
        if self._index is None:
            index = StageIndex()
            index.deletions = self._deletions + 1  # it may lack files that earlier ones have
            return self._source.build(index)
        self._source.follow(self._index)
        self.is_its_files = self.is_its_files and self._source.is_its_files()
        return self._index

    def forget(self) -> None:
        """Rebuild the index from the snapshot at the next reading: files that it names are gone."""
        with self._use:
            self._index = None

    def invalidate(self) -> None:
        """Rebuild the index at the next reading, unless it follows removals: reads differ."""
        if not self._source.follows_removals:
            self.forget()

    def newest_batch(self) -> int:
        """The highest number of a landed batch, of all source clusters; -1 where none is known."""
        with self.reading() as index:
            return index.newest_batch

    def ends(self, cluster: str) -> dict[TopicAndPartition, tuple[int, int]]:
        """(newest generation, next offset) of each staged partition of a source cluster."""
        with self.reading() as index:
            return index.ends(cluster)


def _read_by_files(lake: Reader) -> Reader | None:
    """The reader that knows where the stage's files are, if this process is to read them itself. A
    catalog's own tables in an object store are left to Spark when the lake is written to: its
    workers might not reach the files this way."""
    if isinstance(lake, Lake) and lake.directory is None:
        return lake.reader if lake.opens_files else None
    return None if lake.directory is None else lake
