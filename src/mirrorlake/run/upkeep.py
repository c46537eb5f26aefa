"""Keeps tables that a process writes in small commits small, while flows run. For a lake at a path.

Two rounds a second make 170,000 files and commits a day; each append, and each opening of a table,
pays for them. Retention, history and the map are left to `maintain`.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

from mirrorlake.errors import ReplicationError
from mirrorlake.heaps import give_back
from mirrorlake.lake.changes import WHOLE_LAKE
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.layout import FOLLOWED
from mirrorlake.lake.other_writers import OtherCommit, new_by_others
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import Place
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.young_files import YoungFiles
from mirrorlake.spark.causes import as_mirrorlake_error
from mirrorlake.worker import Failure, Retry, Worker

logger = logging.getLogger(__name__)

#: How often tables are checked, and how long a replaced file is kept for readers, seconds.
TURN_SECONDS = 5.0
KEPT_SECONDS = 900.0
STAGE = "records"
#: The kind of incident while a table cannot be compacted.
FAILED = "upkeep_failed"
#: The kind of incident if another program commits to a lake that only mirrorlake may commit to.
OTHER_WRITER = "other_writer"


class UpkeepWorker:
    """Compacts the tables that this process writes; several processes may do so side by side."""

    def __init__(
        self, lake: PathLake, stage: StageFiles, works: Callable[[], bool] = lambda: True
    ) -> None:
        """Prepare; `works` returns whether this process writes now."""
        self._works = works
        self._tables = lake.tables
        self._incidents = Incidents(lake)
        self._reported = True  # an earlier process may have opened the incident
        self._young = YoungFiles(lake.root, stage, opened=partial(lake.tables.kept, STAGE))
        self._replaced: list[tuple[float, Sequence[Place]]] = []
        self._is_one_writer = lake.one_writer
        self._by_others: list[OtherCommit] = []
        self.thread = Worker(
            "upkeep of the lake",
            self._turn,
            Retry(report=self._report),
            in_words=as_mirrorlake_error,
        )

    def look_over(self) -> None:
        """Compact the tables that have many files, write the log checkpoints that are due, and
        delete the files that were replaced long enough ago.

        Raises ReplicationError for the first table that was not compacted, once all others are.
        """
        failed: dict[str, Exception] = {}
        for due, keep in (
            (self._tables.due, self._compact),
            (self._tables.logs_due, self._tables.write_log_checkpoint),
        ):
            for table in due():
                try:
                    keep(table)
                except Exception as error:  # noqa: BLE001 - the other tables come first
                    failed.setdefault(table, error)
        self.delete_replaced(KEPT_SECONDS)
        # else the process keeps the most memory that compaction, or a client's records, ever took
        give_back()
        for table, first in failed.items():
            why = as_mirrorlake_error(first, f"making table {table} few files")
            raise ReplicationError(f"{why}; records go on, and it is tried again") from first

    def _compact(self, table: str) -> None:
        replaced = self._young.compact() if table == STAGE else self._tables.compact(table)
        if table not in FOLLOWED:  # else `lake/old_commits.py` deletes them, days later
            self._replaced.append((time.monotonic(), replaced))
        self._tables.write_log_checkpoint(table)
        logger.debug("table %s: %d files are one", table, len(replaced))

    def delete_replaced(self, kept_seconds: float) -> None:
        """Delete files replaced so many seconds ago. Raises OSError: the next time goes on."""
        while self._replaced and time.monotonic() - self._replaced[0][0] >= kept_seconds:
            for path in self._replaced[0][1]:
                path.delete()
            del self._replaced[0]

    def note_others(self) -> None:
        """Open an incident for other programs' commits, if only we may commit. Raises OSError."""
        if self._is_one_writer:
            self._by_others += new_by_others(self._tables)
            errors = [commit.error for commit in self._by_others]
            self._incidents.open_all(WHOLE_LAKE, OTHER_WRITER, errors)
            self._by_others.clear()

    def _turn(self) -> float:
        if not self._works():
            return TURN_SECONDS
        self.note_others()
        self.look_over()
        if self._reported:
            self._incidents.close_kinds([WHOLE_LAKE], [FAILED])
            self._reported = False
        return TURN_SECONDS

    def _report(self, failure: Failure) -> None:
        """Open an incident: until compaction succeeds, each commit and answer costs more."""
        logger.warning("%s", failure.problem)
        if failure.attempt:  # the first failure is mostly a conflict with another process's commit
            self._reported = True
            self._incidents.open(WHOLE_LAKE, FAILED, failure.problem)
