"""The tables of a lake at a path or URL, made and kept small by delta-rs. What is appended to them,
and changes of small ones, are commits of our own (`lake/followed_log.py`).

Commits of two processes are Delta's like any others: the second of two tries again on top of the
first. Those that replace files of a table of any size are made in `lake/folder_upkeep.py`.
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
#: So many commits of its own a process knows, of each table; it reads the others to see whose they
#: are (`lake/other_writers.py`), some in a minute.
_OWN_KNOWN = 1000
#: Commits of one table by one process after which its small files are made one; an append costs 12
#: ms while there are few, and 50 ms when there are some hundred. Below a hundred files, with those
#: of two turns of `run/upkeep.py`.
COMPACT_AFTER = 80
#: Versions of a table between checkpoints of its log, where nothing else writes them: Delta's own
#: default. In a store, where each is a request or two for all who open the table, fewer while the
#: checkpoint, which is written again as a whole, is small: one for so many of its actions.
_CHECKPOINT_EVERY, _IN_STORE, _ACTIONS_EACH = 100, 20, 200
_HOUR = 3600.0


class PathTables:
    """Tables by name, in one `place`. For all threads of a process: commits to one table come
    one after another."""

    def __init__(self, place: Place | Path) -> None:
        self.place = place_of(place)
        self._logs: dict[str, FollowedLog] = {}
        self._locks: dict[str, threading.RLock] = {}
        self._use = threading.Lock()
        self._commits: dict[str, int] = {}
        self._own: dict[str, deque[int]] = {}  # versions that appends of this process made
        self._looked: dict[str, int] = {}
        self._shortened: dict[str, float] = {}
        #: Whether a thread writes the checkpoints of logs that are due (`run/upkeep.py`): then no
        #: append does, and waits for it.
        self.kept_up = False
        self._logs_due: set[str] = set()
        self._checkpoints: dict[str, int] = {}  # the newest of this process
        self._actions: dict[str, int] = {}  # in these
        self._keeping = threading.RLock()
        self._kept: dict[str, tuple[DeltaTable, Mapping[str, str] | None]] = {}

    def create(self, table: str, properties: Mapping[str, str] | None = None) -> None:
        """Make a table as its definition says, with more properties; one that is there already
        stays as it is."""
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
                # else another process has made it just now
                raise

    def opened(self, table: str) -> DeltaTable:
        """A table as of now, to be read at once."""
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
        """See `Lake.append`; no rows at all still note down the application's version. Raises
        LakeError, as all that commits, where the table asks for what is not known here."""
        self._add(table, lambda log: log.written(rows), application, version)

    def add_files(
        self, table: str, files: Sequence[AddAction], application: str, version: int
    ) -> None:
        """Make Parquet files that lie in the table's directory a part of it, in one commit;
        idempotent as `append`."""
        self._add(table, lambda _: list(map(_added, files)), application, version)

    def rewrite(self, table: str, change: Callable[[pa.Table], pa.Table | None]) -> None:
        """Replace the rows of a small table by what `change` makes of them; None leaves them as
        they are. What others commit meanwhile is not lost: then it is asked again."""

        def replaced(log: FollowedLog) -> bool | None:
            rows = change(self._now(table).to_pyarrow_table())
            return None if rows is None else log.commit(log.replaced_by(rows), operation="MERGE")

        self._until_committed(table, replaced)

    def fence(self, table: str, application: str, version: int) -> None:
        """See to it that appends of an application below a version, those on their way included,
        raise Fenced."""
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
        """How far an application has come, as of now; None where it never appended."""
        with self._lock(table):
            log = self._log(table)
            log.newest()
            return log.application_version(application)

    def set_properties(self, table: str, properties: Mapping[str, str]) -> None:
        """Give a table properties; one that has them, perhaps by an attempt whose answer was lost,
        stays as it is."""

        def given(delta: DeltaTable) -> None:
            if not properties.items() <= delta.metadata().configuration.items():
                delta.alter.set_table_properties(dict(properties), raise_if_not_exists=False)

        with self._lock(table):
            self._retried(table, lambda: self._synced(table, self._now(table), given))

    def compact(self, table: str) -> list[Place]:
        """Make one file of many small ones, the newest rows first; returns those that were
        replaced, which are no part of the table any more and still there. What is appended
        meanwhile does not wait."""

        def compacted(delta: DeltaTable) -> list[Place]:
            before = set(files_of(delta))
            delta.optimize.compact()
            return [self.place / table / path for path in sorted(before - set(files_of(delta)))]

        with self._keeping:
            return self._retried(table, lambda: self._synced(table, self.kept(table), compacted))

    def kept(self, table: str) -> DeltaTable:
        """A table as of now, for the thread that keeps it small, until its log has a checkpoint:
        none that commits has this one, nor waits while it is asked."""
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
        """Delete the files that no version has needed for so many hours, those that none ever named
        included, and what the log need not keep."""
        with self._lock(table):
            self._now(table).vacuum(
                hours, dry_run=False, enforce_retention_duration=False, full=True
            )
        self.write_log_checkpoint(table)

    def write_log_checkpoint(self, table: str) -> None:
        """Write a checkpoint of a table's log, so that it opens fast, and delete what the log need
        not keep, of a long one each hour. What is appended meanwhile does not wait."""
        with self._keeping:
            delta = self.kept(table)
            self._checkpoint(table, delta)
            if table not in FOLLOWED:
                delta.cleanup_metadata()
            self._commits[table], self._checkpoints[table] = 0, delta.version()
            self._logs_due.discard(table)
            delta.update_incremental()  # by this checkpoint, as others go
            self._follow_from(table, delta)
            del self._kept[table]
            now = time.monotonic()
            if table in FOLLOWED and now - self._shortened.get(table, -_HOUR) >= _HOUR:
                shorten(DeltaLog(self.place / table), time.time_ns() // 1_000_000)
                self._shortened[table] = now

    def _follow_from(self, table: str, delta: DeltaTable) -> None:
        """Let what commits go by a newer snapshot: what one of long ago is made of is deleted."""
        with self._lock(table):
            if table in self._logs:
                self._logs[table].table = delta
                self._logs[table].newest()  # what made it compact is there: no append meets it

    def logs_due(self) -> list[str]:
        """The tables whose logs are to have a checkpoint, where `kept_up` leaves that to others."""
        return sorted(self._logs_due.copy())

    def _checkpoint(self, table: str, delta: DeltaTable) -> None:
        """Write a checkpoint of a table's log; what it is of may be deleted behind it."""
        log = DeltaLog(self.place / table)
        delta.create_checkpoint()
        log.checkpoint_of(delta.version()).sync()
        (log.folder / HINT).sync()
        log.folder.sync()
        if self.place.in_store:
            hint = hinted(log.folder)
            self._actions[table] = 0 if hint is None else hint.actions

    def not_own(self, table: str, newest: int) -> tuple[int, list[int]]:
        """The newest version of a table that this process has come by (-1: none); and of those up
        to there that were not `looked_at` yet the ones that its own appends did not make, of those
        of before it opened the table the `newest`. Asks nothing of the disk."""
        with self._lock(table):
            version = self.known_version(table)
            if version is None:
                return -1, []
            first = self._looked.get(table, max(-1, version - newest)) + 1
            own = {*self._own.get(table, ())}
            return version, [each for each in range(first, version + 1) if each not in own]

    def looked_at(self, table: str, version: int) -> None:
        """Who made the commits of a table up to a version is known: `not_own` has them no more."""
        with self._lock(table):
            self._looked[table] = version
            own = self._own.get(table, deque())
            while own and own[0] <= version:
                own.popleft()

    def known_version(self, table: str) -> int | None:
        """The newest version that this process has come by; None of a table that it did not
        open."""
        log = self._logs.get(table)
        return None if log is None else log.version

    def check_there(self) -> None:
        """Raise LakeError where a table that this process commits to was deleted meanwhile, or made
        again, as far as that is known without asking much: in a store of the stage alone."""
        for table in {"records"} if self.place.in_store else {"records", *self._logs}:
            with self._lock(table):
                log = self._log(table)
                log.check_there()
                if not self.place.in_store:
                    log.newest()  # by which the next look goes, also where others commit alone

    def due(self) -> list[str]:
        """The tables to which this process has committed often since they were compact."""
        commits = self._commits.copy()  # others commit to further tables meanwhile
        return [table for table, count in commits.items() if count >= COMPACT_AFTER]

    def _add(
        self,
        table: str,
        made: Callable[[FollowedLog], list[dict[str, Any]]],
        application: str | None,
        version: int,
    ) -> None:
        """Commit what `made` puts into the store, once, unless the application has come as far.
        Raises Fenced where it has come further."""
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
        """Have a commit made behind those that are there: once more where it returns False, since
        another one came before; None where there is nothing to commit."""
        with self._lock(table):
            log = self._log(table)
            log.check()
            while (done := commit(log)) is False:
                log.check()
            if done:
                self._count(table, log.version)

    def _count(self, table: str, version: int) -> None:
        """Count a commit of ours, and have the log get its checkpoint where that is due."""
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
        except (DeltaError, OSError, ValueError) as error:  # the last of a hint that is damaged
            logger.warning("the log of table %s has no newer checkpoint: %s", table, error)

    def _is_due(self, table: str, version: int) -> bool:
        """Whether the log has gone so far behind its checkpoint; where this process wrote none, the
        number of the commit says so, of however many processes."""
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
        """Do what commits to a table by delta-rs, and have it outlast a loss of power."""
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
        """The table as of its newest commit."""
        log = self._log(table)
        if log.newest() != log.table.version():
            log.table.update_incremental()
        return log.table

    def _opened(self, table: str) -> DeltaTable:
        """The table as of now, with what one of an earlier version lacks."""
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
