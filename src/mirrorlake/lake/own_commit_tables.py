"""The tables of a lake at a path or URL, with commits of our own for what is appended to them and
for changes of small ones; the rest is delta-rs' (`path_tables.py`).

delta-rs lists the log three times an append, in a folder all of it, and reads all of it behind the
last checkpoint for the version of an application: in a store a dozen requests, one after another.
Here it is a put of its rows and a put of its commit (`own_commits.commit_at`), which is known again
where its answer was lost: what it depends on is known by following the log, of which each commit is
read once. A table with anything that this does not know is left to delta-rs.
"""

import logging
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from mirrorlake.errors import LakeError
from mirrorlake.lake.delta_log import Commit, DeltaLog, files_of, layout_of, why_not_by_hand
from mirrorlake.lake.layout import in_layout
from mirrorlake.lake.log_repair import hinted
from mirrorlake.lake.own_commits import NewFile, added_by, commit_at, keys_of, removed_by
from mirrorlake.lake.owners import is_done, next_owner
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import Place

logger = logging.getLogger(__name__)

#: Versions of a table between checkpoints of its log, where nothing else writes them: Delta's own
#: default. In a store, where each is a request or two for all who open the table, fewer while the
#: checkpoint, which is written again as a whole, is small: one for so many of its actions.
_CHECKPOINT_EVERY, _IN_STORE, _ACTIONS_EACH = 100, 20, 200
#: How often it is looked in a store whether a table is still the one that was opened, seconds; in a
#: folder, where it costs nothing, before each commit.
THERE_SECONDS = 60.0
#: Properties by which a table asks that rows be checked before they are written.
_CHECKS = "delta.constraints."


class OwnCommitTables(PathTables):
    """Tables by name, as `PathTables`; commits are our own where a table allows it."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._logs: dict[str, FollowedLog] = {}
        #: Actions in the checkpoints of this process.
        self._actions: dict[str, int] = {}

    def version(self, table: str) -> int:
        """See `PathTables.version`."""
        with self._lock(table):
            return self._log(table).newest()

    def application_version(self, table: str, application: str) -> int | None:
        """See `PathTables.application_version`."""
        with self._lock(table):
            log = self._log(table)
            log.newest()
            return log.application_version(application)

    def append(
        self, table: str, rows: pa.Table, application: str | None = None, version: int = 0
    ) -> None:
        """See `PathTables.append`."""
        if not self._append(table, lambda log: log.written(rows), application, version):
            super().append(table, rows, application, version)

    def add_files(
        self, table: str, files: Sequence[AddAction], application: str, version: int
    ) -> None:
        """See `PathTables.add_files`."""
        if not self._append(table, lambda _: list(map(_added, files)), application, version):
            super().add_files(table, files, application, version)

    def rewrite(self, table: str, change: Callable[[pa.Table], pa.Table | None]) -> None:
        """See `PathTables.rewrite`: delta-rs takes a commit of its own whose answer was lost for
        another process's, and what it changes would be changed again."""
        with self._lock(table):
            log = self._log(table)
            while log.is_there() and log.is_plain:
                rows = change(self._now(table).to_pyarrow_table())
                if rows is None:
                    return
                if log.commit(log.replaced_by(rows), operation="MERGE"):
                    self._count(table, log.version)
                    return
            super().rewrite(table, change)

    def take_over(self, table: str, application: str, least: int) -> int:
        """See `Lake.take_over`."""
        with self._lock(table):
            log = self._log(table)
            while log.is_there() and log.is_plain:
                log.newest()
                number = next_owner(log.application_version(application), least)
                if log.commit([], application, number):
                    self._count(table, log.version)
                    return number
            return super().take_over(table, application, least)

    def _append(
        self,
        table: str,
        made: "Callable[[FollowedLog], list[dict[str, Any]]]",
        application: str | None,
        version: int,
    ) -> bool:
        """Commit what `made` puts into the store, unless the application has come as far; False
        where the table asks for more than is known here. Raises Fenced where it has come
        further."""
        with self._lock(table):
            log, added = self._log(table), None
            while log.is_there() and log.is_plain:
                if application is not None:
                    known = log.application_version(application)
                    if is_done(table, application, known, version):
                        return True
                added = made(log) if added is None else added
                if log.commit(added, application, version):
                    self._count(table, log.version)
                    return True
            return False

    def check_there(self) -> None:
        """See `PathTables.check_there`; in a store of the stage alone."""
        for table in {"records"} if self.place.in_store else {"records", *self._logs}:
            with self._lock(table):
                log = self._log(table)
                log.is_there()
                if not self.place.in_store:
                    log.newest()  # by which the next look goes, also where others commit alone

    def known_version(self, table: str) -> int | None:
        log = self._logs.get(table)
        return None if log is None else log.version

    def _count(self, table: str, version: int | None = None) -> None:
        super()._count(table, version)
        if version is None or not self._is_due(table, version):
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

    def _checkpoint(self, table: str, delta: DeltaTable) -> None:
        super()._checkpoint(table, delta)
        if self.place.in_store:
            hint = hinted(DeltaLog(self.place / table).folder)
            self._actions[table] = 0 if hint is None else hint.actions

    def _follow_from(self, table: str, delta: DeltaTable) -> None:
        with self._lock(table):
            if table in self._logs:
                self._logs[table].table = delta
                self._logs[table].newest()  # what made it compact is there: no append meets it

    def _log(self, table: str) -> "FollowedLog":
        if table not in self._logs:
            self._logs[table] = FollowedLog(self.place / table, lambda: self._opened(table))
        return self._logs[table]

    def _now(self, table: str) -> DeltaTable:
        log = self._log(table)
        if log.newest() != log.table.version():
            log.table.update_incremental()
        return log.table


class FollowedLog:
    """What decides about appends to a table, kept up by reading the commits that come.

    Attributes:
        table: as it was at some version.
        version: the newest one of which is known what it did.
        is_plain: whether the table asks of an append what is known here.
    """

    def __init__(self, place: Place, opened: Callable[[], DeltaTable]) -> None:
        self._place, self._log, self._opened = place, DeltaLog(place), opened
        self._id: str | None = None
        self._open()

    def _open(self) -> None:
        """Open the table. Raises LakeError where it is not the one that was opened before."""
        self._options = self._place.options
        try:
            table = self._opened()
        except TableNotFoundError:
            if self._id is None:
                raise
            raise self._replaced("deleted") from None
        found = str(table.metadata().id)
        if self._id not in (None, found):
            raise self._replaced("deleted and made again")
        if self._id is not None and self._lacks_known(table):
            raise self._replaced("put back as it had been", "be sure that this is the lake")
        self.table, self._id = table, found
        self.version = self.table.version()
        #: A version, and the mark of its commit; in a store None until the first look.
        self._seen: tuple[int, Hashable] | None = None
        self._looked_at = time.monotonic()
        if not self._place.in_store:
            self._look()
        self._applications: dict[str, int | None] = {}
        configuration = self.table.metadata().configuration
        checked = any(name.startswith(_CHECKS) for name in configuration)
        self.is_plain = not checked and why_not_by_hand(self.table) is None

    def _lacks_known(self, table: DeltaTable) -> bool:
        """Whether what is known of the table that was opened before is not in this one, which has
        its id: the commits that come in place of those that are gone would be taken for known. A
        folder may be listed late: of a commit that is to be gone its own name says it."""
        if table.version() < self.version:
            return self._log.file_of(self.version).mark() is None
        known = {name: number for name, number in self._applications.items() if number is not None}
        now = {name: table.transaction_version(name) for name in known}
        return any(number is not None and number < known[name] for name, number in now.items())

    def _replaced(self, what: str, first: str = "put back the lake that it was of") -> LakeError:
        return LakeError(
            f"table {self._place} was {what} while this process wrote to it, and nothing more is "
            f"written there; {first}, and start `mirrorlake run` again"
        )

    def is_there(self) -> bool:
        """True, where it is the table still that was opened: a commit behind a log that is gone
        would be one of no table. Raises LakeError where it was deleted."""
        if self._place.in_store and time.monotonic() - self._looked_at < THERE_SECONDS:
            return True
        is_other = (
            self._seen is not None and self._log.file_of(self._seen[0]).mark() != self._seen[1]
        )
        if is_other or self._look() is None:
            self._open()  # its log was cleaned up
            self._look()
        self._looked_at = time.monotonic()
        return True

    def _look(self) -> Hashable | None:
        """The mark of the newest commit that is known; None where that is gone."""
        if self._seen is None or self._seen[0] != self.version:
            self._seen = self.version, self._log.file_of(self.version).mark()
        return self._seen[1]

    def newest(self) -> int:
        """The table's newest version; what came up to it is taken over."""
        if self._place.options != self._options:
            self._open()  # by credentials that are renewed; those before it may be no longer good
        try:
            while (came := self._log.commit(self.version + 1)) is not None:
                self._take(came)
        except FileNotFoundError:  # the log was cleaned up meanwhile
            self._open()
        return self.version

    def _take(self, came: Commit) -> None:
        if came.changes_table:
            self._open()
            return
        self.version += 1
        self._applications.update(came.applications)

    def application_version(self, application: str) -> int | None:
        """How far an application has come, as of `version`."""
        if application not in self._applications:
            self._applications[application] = self.table.transaction_version(application)
        return self._applications[application]

    def written(self, rows: pa.Table) -> list[dict[str, Any]]:
        """Put rows into the store, and return the actions that make them a part of the table.
        Raises LakeError for one that lacks what each has to have."""
        if not rows.num_rows:
            return []
        layout = layout_of(self.table)
        fitting = in_layout(rows, layout)
        needed = [field.name for field in self.table.schema().fields if not field.nullable]
        if lacking := [name for name in needed if fitting[name].null_count]:
            raise LakeError(
                f"rows of table {self._place.name} have no {', '.join(lacking)}; none was written"
            )
        file = NewFile(self._place, layout, keys_of(self.table))
        file.write(fitting)
        file.close()
        return [added_by(self._log, file, dataChange=True)]

    def replaced_by(self, rows: pa.Table) -> list[dict[str, Any]]:
        """Put rows into the store, and return the actions by which they are all that the table
        holds, where nothing came behind `table`. Raises LakeError as `written`."""
        return [*self.written(rows), *removed_by(files_of(self.table), dataChange=True)]

    def commit(
        self,
        actions: Sequence[dict[str, Any]],
        application: str | None = None,
        number: int = 0,
        operation: str = "WRITE",
    ) -> bool:
        """Commit actions behind the newest version, as the `number` of an application. False where
        another commit came before: it has been taken over, and the application is to be asked for
        again."""
        noted = [] if application is None else [{"txn": {"appId": application, "version": number}}]
        try:
            if not commit_at(self._log, self.version + 1, [*noted, *actions], operation):
                self.newest()
                return False
        except FileNotFoundError:  # the log was cleaned up meanwhile
            self._open()
            return False
        self.version += 1
        if application is not None:
            self._applications[application] = number
        return True


def _added(file: AddAction) -> dict[str, Any]:
    add = {"path": file.path, "partitionValues": {}, "size": file.size, "stats": file.stats}
    return {"add": {**add, "modificationTime": file.modification_time, "dataChange": True}}
