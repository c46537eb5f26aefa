"""The log of a table at a path or URL, as the process that commits to it follows it. It reads each
commit that comes once, to know what decides about its own; and its own is one put, which is
recognized where the answer was lost (`own_commits.commit_at`). delta-rs would list the log three
times an append, and read all of it behind the last checkpoint: in a store a dozen requests."""

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from mirrorlake.errors import LakeError
from mirrorlake.lake.delta_log import Commit, DeltaLog, append_barrier, files_of, layout_of
from mirrorlake.lake.layout import in_layout
from mirrorlake.lake.own_commits import NewFile, added_by, commit_at, keys_of, removed_by
from mirrorlake.lake.place import Place

#: How often, in seconds, a table in a store is checked to be the one that was opened; in a folder,
#: where a check costs nothing, before each commit.
THERE_SECONDS = 60.0


class FollowedLog:
    """What decides about appends to a table, kept up to date by reading the commits that come.

    Attributes:
        table: the table as of some version.
        version: the newest version whose commit was read.
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
        self._barred = append_barrier(self.table)

    def _lacks_known(self, table: DeltaTable) -> bool:
        """Whether this table, which has the known id, lacks commits that this process knows: the
        commits that take the place of lost ones would be mistaken for them. A folder may be listed
        late, so a commit counts as gone only where its own file is missing."""
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

    def check_there(self) -> None:
        """Raise LakeError where the table is no longer the one that was opened: a commit behind a
        log that is gone would belong to no table."""
        if self._place.in_store and time.monotonic() - self._looked_at < THERE_SECONDS:
            return
        is_other = (
            self._seen is not None and self._log.file_of(self._seen[0]).mark() != self._seen[1]
        )
        if is_other or self._look() is None:
            self._open()  # its log was cleaned up
            self._look()
        self._looked_at = time.monotonic()

    def check(self) -> None:
        """As `check_there`; also where the table demands of commits what is not known here."""
        self.check_there()
        if self._barred is not None:
            raise LakeError(
                f"nothing is written to table {self._place}, since {self._barred}: take away what "
                "another program gave it"
            )

    def _look(self) -> Hashable | None:
        """The mark of the newest known commit; None where that commit is gone."""
        if self._seen is None or self._seen[0] != self.version:
            self._seen = self.version, self._log.file_of(self.version).mark()
        return self._seen[1]

    def newest(self) -> int:
        """The table's newest version; the commits up to it are read."""
        if self._place.options != self._options:
            self._open()  # with renewed credentials: the old ones may have expired
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
        """The version that an application has reached, as of `version`."""
        if application not in self._applications:
            self._applications[application] = self.table.transaction_version(application)
        return self._applications[application]

    def written(self, rows: pa.Table) -> list[dict[str, Any]]:
        """Write rows into a new file, and return the actions that add it to the table. Raises
        LakeError for rows that lack a required value."""
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
        """Write rows into a new file, and return the actions that make it the whole content of the
        table, if nothing came behind `table`. Raises LakeError as `written`."""
        return [*self.written(rows), *removed_by(files_of(self.table), dataChange=True)]

    def commit(
        self,
        actions: Sequence[dict[str, Any]],
        application: str | None = None,
        number: int = 0,
        operation: str = "WRITE",
    ) -> bool:
        """Commit actions behind the newest version, as the `number` of an application. False where
        another commit came first: it was read, and the caller must check the application again."""
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
