"""While flows run: the tables that a process writes in small commits are kept small. Only where the lake is a path.

Two rounds a second make 170,000 files and commits a day; an append, and whoever opens the table, pays for each. What
`maintain` does (retention, history, the map) is left to it.
"""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from deltalake.exceptions import DeltaError

from mirrorlake.heaps import give_back
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.young_files import YoungFiles
from mirrorlake.worker import Worker

logger = logging.getLogger(__name__)

#: How often tables are looked over, and how long a replaced file is kept for whoever is reading it, seconds.
TURN_SECONDS = 5.0
KEPT_SECONDS = 900.0
STAGE = "records"


class Upkeep:
    """Compacts what this process writes; several processes may do so side by side."""

    def __init__(self, directory: Path, tables: PathTables, stage: StageFiles) -> None:
        self._tables = tables
        self._young = YoungFiles(directory, stage)
        self._replaced: list[tuple[float, Sequence[Path]]] = []
        self.thread = Worker("upkeep of the lake", self._turn)

    def look_over(self) -> None:
        """Compact the tables that have become many files, and delete what was replaced long enough ago."""
        for table in self._tables.due():
            try:
                replaced = self._young.compact() if table == STAGE else self._tables.compact(table)
                self._tables.checkpoint(table)
            except (DeltaError, OSError) as error:  # the next turn tries again; records go on without it
                logger.warning("table %s could not be made compact: %s", table, error)
                continue
            self._replaced.append((time.monotonic(), replaced))
            logger.debug("table %s: %d files are one", table, len(replaced))
        self.delete_replaced(KEPT_SECONDS)
        give_back()  # else the most that compaction, or a client's records, ever took stays with the process

    def delete_replaced(self, kept_seconds: float) -> None:
        """Delete the files that were replaced so many seconds ago."""
        due = [paths for at, paths in self._replaced if time.monotonic() - at >= kept_seconds]
        self._replaced = self._replaced[len(due) :]
        for path in (path for paths in due for path in paths):
            path.unlink(missing_ok=True)

    def _turn(self) -> float:
        self.look_over()
        return TURN_SECONDS
