"""The tables of a lake at a path or URL as one process has them open, and kept: their logs get
checkpoints and are shortened, their small files are joined, by delta-rs."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from mirrorlake.lake.delta_log import DeltaLog, files_of
from mirrorlake.lake.folder import HINT
from mirrorlake.lake.followed_log import FollowedLog
from mirrorlake.lake.layout import FOLLOWED, add_missing_columns
from mirrorlake.lake.log_repair import hinted
from mirrorlake.lake.old_commits import shorten
from mirrorlake.lake.place import Place, place_of

logger = logging.getLogger(__name__)
T = TypeVar("T")

_ATTEMPTS = 10
#: How many of its own commits to a table a process remembers. It reads the others, a few a minute,
#: to see who made them (`lake/other_writers.py`).
_OWN_KNOWN = 1000
#: Commits of one process to a table after which its small files are joined. An append takes 12 ms
#: while there are few, and 50 ms when there are some hundred. With the files of two turns of
#: `run/upkeep.py`, a table stays below a hundred.
COMPACT_AFTER = 80
#: Versions between two checkpoints of a table's log, where no other program writes them: Delta's
#: own default. In a store each version costs every process that opens the table a request or two.
#: There the distance is smaller while the checkpoint, which is rewritten as a whole, is small: one
#: version for so many of its actions.
_CHECKPOINT_EVERY, _IN_STORE, _ACTIONS_EACH = 100, 20, 200
_HOUR = 3600.0


class KeptTables:
    """The tables in one `place`, by name. For all threads: commits to a table come one by one."""

    def __init__(self, place: Place | Path) -> None:
        self.place = place_of(place)
        self._logs: dict[str, FollowedLog] = {}
        self._locks: dict[str, threading.RLock] = {}
        self._use = threading.Lock()
        self._commits: dict[str, int] = {}
        self._own: dict[str, deque[int]] = {}  # versions that this process committed
        self._looked: dict[str, int] = {}
        self._shortened: dict[str, float] = {}
        #: Whether another thread (`run/upkeep.py`) writes the checkpoints of logs that are due, so
        #: that no append waits for one.
        self.kept_up = False
        self._logs_due: set[str] = set()
        self._checkpoints: dict[str, int] = {}  # the newest that this process wrote
        self._actions: dict[str, int] = {}  # how many each of those holds
        self._keeping = threading.RLock()
        self._kept: dict[str, tuple[DeltaTable, Mapping[str, str] | None]] = {}

    def compact(self, table: str) -> list[Place]:
        """Join small files into one, the newest rows first. Returns the replaced files, which no
        longer belong to the table but still exist. Appends do not wait."""

        def compacted(delta: DeltaTable) -> list[Place]:
            before = set(files_of(delta))
            delta.optimize.compact()
            return [self.place / table / path for path in sorted(before - set(files_of(delta)))]

        with self._keeping:
            return self._retried(table, lambda: self._synced(table, self.kept(table), compacted))

    def kept(self, table: str) -> DeltaTable:
        """A table as of now, for the upkeep thread, kept open until its log has a checkpoint.
        Threads that commit use another object, and do not wait for this one."""
        with self._keeping:
            delta, reached_by = self._kept.get(table, (None, None))
            if delta is not None and reached_by == self.place.options:
                try:
                    delta.update_incremental()
                    return delta
                except (DeltaError, OSError) as error:  # the log was cleaned up meanwhile
                    logger.debug("table %s is opened again: %s", table, error)
            delta = self._opened(table)
            self._kept[table] = delta, self.place.options
            return delta

    def vacuum(self, table: str, hours: int) -> None:
        """Delete the files that no version has needed for so many hours, including files that no
        commit ever named, and what the log need not keep."""
        with self._lock(table):
            self._now(table).vacuum(
                hours, dry_run=False, enforce_retention_duration=False, full=True
            )
        self.write_log_checkpoint(table)

    def write_log_checkpoint(self, table: str) -> None:
        """Write a checkpoint of a table's log, so that the table opens fast, and delete what the
        log need not keep; from the long logs of `FOLLOWED` once an hour. Appends do not wait."""
        with self._keeping:
            delta = self.kept(table)
            self._checkpoint(table, delta)
            if table not in FOLLOWED:
                delta.cleanup_metadata()
            self._commits[table], self._checkpoints[table] = 0, delta.version()
            self._logs_due.discard(table)
            delta.update_incremental()  # reads this checkpoint, as others will
            self._follow_from(table, delta)
            del self._kept[table]
            now = time.monotonic()
            if table in FOLLOWED and now - self._shortened.get(table, -_HOUR) >= _HOUR:
                shorten(DeltaLog(self.place / table), time.time_ns() // 1_000_000)
                self._shortened[table] = now

    def _follow_from(self, table: str, delta: DeltaTable) -> None:
        """Let commits go on from a newer snapshot: files behind an old one are deleted."""
        with self._lock(table):
            if table in self._logs:
                self._logs[table].table = delta
                self._logs[table].newest()  # takes over the compaction, so that no append meets it

    def logs_due(self) -> list[str]:
        """Tables whose logs are due for a checkpoint, which `kept_up` leaves to another thread."""
        return sorted(self._logs_due.copy())

    def _checkpoint(self, table: str, delta: DeltaTable) -> None:
        """Write a checkpoint of a log, durably: the commits before it may then be deleted."""
        log = DeltaLog(self.place / table)
        delta.create_checkpoint()
        log.checkpoint_of(delta.version()).sync()
        (log.folder / HINT).sync()
        log.folder.sync()
        if self.place.in_store:
            hint = hinted(log.folder)
            self._actions[table] = 0 if hint is None else hint.actions

    def due(self) -> list[str]:
        """The tables with at least `COMPACT_AFTER` own commits since the last upkeep."""
        commits = self._commits.copy()  # other threads may add tables meanwhile
        return [table for table, count in commits.items() if count >= COMPACT_AFTER]

    def _count(self, table: str, version: int) -> None:
        """Count a commit of this process, and write the log's checkpoint where one is due."""
        self._own.setdefault(table, deque(maxlen=_OWN_KNOWN)).append(version)
        self._commits[table] = self._commits.get(table, 0) + 1
        if not self._is_due(table, version):
            return
        if self.kept_up:
            self._logs_due.add(table)
            return
        self._checkpoints[table] = version
        try:
            self._checkpoint(table, self._now(table))
        except (DeltaError, OSError, ValueError) as error:  # ValueError: a damaged hint
            logger.warning("the log of table %s has no newer checkpoint: %s", table, error)

    def _is_due(self, table: str, version: int) -> bool:
        """Whether the log has grown far enough behind its checkpoint. Where this process wrote
        none, the version number decides, however many processes commit."""
        newest, every = self._checkpoints.get(table), _CHECKPOINT_EVERY
        if self.place.in_store:
            every = min(every, max(_IN_STORE, self._actions.get(table, 0) // _ACTIONS_EACH))
        return version % every == 0 if newest is None else version >= newest + every

    def _retried(self, table: str, work: Callable[[], T]) -> T:
        for _ in range(_ATTEMPTS - 1):
            try:
                return work()
            except CommitFailedError as error:
                logger.debug("table %s: %s; trying again", table, error)
        return work()

    def _synced(self, table: str, delta: DeltaTable, work: Callable[[DeltaTable], T]) -> T:
        """Run `work`, which commits by delta-rs, and make the commit outlast a loss of power."""
        before = delta.version()
        done = work(delta)
        DeltaLog(self.place / table).sync(before, delta.version())
        return done

    def _lock(self, table: str) -> threading.RLock:
        with self._use:
            return self._locks.setdefault(table, threading.RLock())

    def _log(self, table: str) -> FollowedLog:
        if table not in self._logs:
            self._logs[table] = FollowedLog(self.place / table, lambda: self._opened(table))
        return self._logs[table]

    def _now(self, table: str) -> DeltaTable:
        log = self._log(table)
        if log.newest() != log.table.version():
            log.table.update_incremental()
        return log.table

    def _opened(self, table: str) -> DeltaTable:
        """The table as of now, with columns and log properties that an earlier version lacks."""
        place = self.place / table
        delta = place.delta()
        before = delta.version()
        if not add_missing_columns(delta, table):
            return delta
        changed = place.delta()
        DeltaLog(place).sync(before, changed.version())
        return changed
