"""The tables of a lake at a path or URL, made by delta-rs, and what is committed to them. Appends,
and changes of small tables, are commits of our own (`lake/followed_log.py`).

When two processes commit at once, Delta's protocol applies: the second one retries on top of the
first. `lake/folder_upkeep.py` makes the commits that replace files of a table of any size.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

from mirrorlake.lake.definitions import definition
from mirrorlake.lake.delta_log import DeltaLog, features_of
from mirrorlake.lake.folder import has_table
from mirrorlake.lake.followed_log import FollowedLog
from mirrorlake.lake.kept_tables import KeptTables
from mirrorlake.lake.layout import log_properties
from mirrorlake.lake.owners import is_done, next_owner


class PathTables(KeptTables):
    """The tables in one `place`, by name. For all threads: commits to a table come one by one."""

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


def _added(file: AddAction) -> dict[str, Any]:
    add = {"path": file.path, "partitionValues": {}, "size": file.size, "stats": file.stats}
    return {"add": {**add, "modificationTime": file.modification_time, "dataChange": True}}
