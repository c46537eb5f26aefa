"""The tables of a lake at a path or URL, made and compacted by delta-rs. Appends, and changes of
small tables, are commits of our own (`lake/followed_log.py`).

When two processes commit at once, Delta's protocol applies: the second one retries on top of the
first. `lake/folder_upkeep.py` makes the commits that replace files of a table of any size.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from mirrorlake.lake.definitions import definition
from mirrorlake.lake.delta_log import DeltaLog, features_of, files_of
from mirrorlake.lake.folder import HINT, has_table
from mirrorlake.lake.followed_log import FollowedLog
from mirrorlake.lake.layout import FOLLOWED, add_missing_columns, log_properties
from mirrorlake.lake.log_repair import hinted
from mirrorlake.lake.old_commits import shorten
from mirrorlake.lake.owners import is_done, next_owner
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


class PathTables:
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

    def create(self, table: str, properties: Mapping[str, str] | None = None) -> None:
        """Create a table by its definition, with properties; an existing one stays as it is."""
        layout = definition(table)
        fields = [
            pa.field(
                column.name,
                column.arrow_type,
                not column.required,
                {"comment": column.comment} if column.comment else None,
            )
            for column in layout.columns
        ]
        try:
            DeltaTable.create(
                str(self.place / table),
                schema=Schema.from_arrow(pa.schema(fields)),
                mode="ignore",
                name=table,
                description=layout.comment,
                configuration={**layout.properties, **log_properties(table), **(properties or {})},
                raise_if_key_not_exists=False,  # properties of our own
                storage_options=None if self.place.options is None else dict(self.place.options),
            )
            DeltaLog(self.place / table).sync(-1, 0)
        except DeltaError:
            if not has_table(self.place, table):
                # otherwise another process has just made it
                raise

    def opened(self, table: str) -> DeltaTable:
        """A table as of now. Read it at once: later calls update the same object."""
        with self._lock(table):
            return self._now(table)

    def properties(self, table: str) -> dict[str, str]:
        """The properties of a table, as of now."""
        with self._lock(table):
            return dict(self._now(table).metadata().configuration)

    def features(self, table: str) -> set[str]:
        """The features of Delta's protocol that a table uses, or may use, as of now."""
        with self._lock(table):
            return features_of(self._now(table).protocol())

    def version(self, table: str) -> int:
        """The newest committed version of a table."""
        with self._lock(table):
            return self._log(table).newest()

    def append(
        self, table: str, rows: pa.Table, application: str | None = None, version: int = 0
    ) -> None:
        """See `Lake.append`; an append without rows still records the application's version. Raises
        LakeError, as every commit here does, where the table needs what this version cannot
        write."""
        self._add(table, lambda log: log.written(rows), application, version)

    def add_files(
        self, table: str, files: Sequence[AddAction], application: str, version: int
    ) -> None:
        """Add Parquet files in the table's directory to it, in a commit; idempotent as `append`."""
        self._add(table, lambda _: list(map(_added, files)), application, version)

    def rewrite(self, table: str, change: Callable[[pa.Table], pa.Table | None]) -> None:
        """Replace the rows of a small table by what `change` returns for them; None leaves them as
        they are. When another commit comes in between, `change` is called again with its rows."""

        def replaced(log: FollowedLog) -> bool | None:
            rows = change(self._now(table).to_pyarrow_table())
            return None if rows is None else log.commit(log.replaced_by(rows), operation="MERGE")

        self._until_committed(table, replaced)

    def fence(self, table: str, application: str, version: int) -> None:
        """Make an application's appends below a version, also those in flight, raise Fenced."""
        self.append(table, definition(table).rows.empty_table(), application, version)

    def take_over(self, table: str, application: str, least: int) -> int:
        """See `Lake.take_over`."""
        number = least

        def taken(log: FollowedLog) -> bool:
            nonlocal number
            log.newest()
            number = next_owner(log.application_version(application), least)
            return log.commit([], application, number)

        self._until_committed(table, taken)
        return number

    def application_version(self, table: str, application: str) -> int | None:
        """The version that an application has reached, as of now; None where it never appended."""
        with self._lock(table):
            log = self._log(table)
            log.newest()
            return log.application_version(application)

    def set_properties(self, table: str, properties: Mapping[str, str]) -> None:
        """Set properties of a table, unless it has them, perhaps by one whose answer was lost."""

        def given(delta: DeltaTable) -> None:
            if not properties.items() <= delta.metadata().configuration.items():
                delta.alter.set_table_properties(dict(properties), raise_if_not_exists=False)

        with self._lock(table):
            self._retried(table, lambda: self._synced(table, self._now(table), given))

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

    def not_own(self, table: str, newest: int) -> tuple[int, list[int]]:
        """The newest version of a table that this process has read or committed (-1: none), and the
        versions up to it that are neither `looked_at` nor its own commits. The first call considers
        only the `newest` versions. Reads no file."""
        with self._lock(table):
            version = self.known_version(table)
            if version is None:
                return -1, []
            first = self._looked.get(table, max(-1, version - newest)) + 1
            own = {*self._own.get(table, ())}
            return version, [each for each in range(first, version + 1) if each not in own]

    def looked_at(self, table: str, version: int) -> None:
        """Record that a table's commits up to a version were seen: `not_own` leaves them out."""
        with self._lock(table):
            self._looked[table] = version
            own = self._own.get(table, deque())
            while own and own[0] <= version:
                own.popleft()

    def known_version(self, table: str) -> int | None:
        """The newest version that this process read or committed; None for an unopened table."""
        log = self._logs.get(table)
        return None if log is None else log.version

    def check_there(self) -> None:
        """Raise LakeError where a table that this process commits to was deleted, or deleted and
        made again. In a store, where a look is a request, only the stage is checked."""
        for table in {"records"} if self.place.in_store else {"records", *self._logs}:
            with self._lock(table):
                log = self._log(table)
                log.check_there()
                if not self.place.in_store:
                    log.newest()  # the next look compares with it, even if only others commit

    def due(self) -> list[str]:
        """The tables with at least `COMPACT_AFTER` own commits since the last upkeep."""
        commits = self._commits.copy()  # other threads may add tables meanwhile
        return [table for table, count in commits.items() if count >= COMPACT_AFTER]

    def _add(
        self,
        table: str,
        made: Callable[[FollowedLog], list[dict[str, Any]]],
        application: str | None,
        version: int,
    ) -> None:
        """Commit the actions of `made`, which is called once, unless the application already has
        this version. Raises Fenced where it has a higher one."""
        added: list[dict[str, Any]] | None = None

        def commit(log: FollowedLog) -> bool | None:
            nonlocal added
            if application is not None:
                known = log.application_version(application)
                if is_done(table, application, known, version):
                    return None
            added = made(log) if added is None else added
            return log.commit(added, application, version)

        self._until_committed(table, commit)

    def _until_committed(self, table: str, commit: Callable[[FollowedLog], bool | None]) -> None:
        """Commit behind the newest version. `commit` is called again while it returns False,
        because another commit came first; it returns None where there is nothing to commit."""
        with self._lock(table):
            log = self._log(table)
            log.check()
            while (done := commit(log)) is False:
                log.check()
            if done:
                self._count(table, log.version)

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


def _added(file: AddAction) -> dict[str, Any]:
    add = {"path": file.path, "partitionValues": {}, "size": file.size, "stats": file.stats}
    return {"add": {**add, "modificationTime": file.modification_time, "dataChange": True}}
