"""The tables of a lake at a path or URL as a reader has them open: by delta-rs, from when they are
first asked for, and brought up to date by the commits that came since."""

import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from mirrorlake.errors import LakeError
from mirrorlake.lake.delta_log import BARRED_FEATURES, DeltaLog, features_of
from mirrorlake.lake.folder import has_table
from mirrorlake.lake.log_copy import LogCopy
from mirrorlake.lake.place import Place, place_of
from mirrorlake.lake.reader import OpenTable
from mirrorlake.threads import side_by_side

#: How many tables are opened at a time in a store, where answers take time: all of a query.
_AT_ONCE = 16
#: The table whose open snapshot is never brought up to date: its holder (`held`) asks for version
#: and files one after the other.
_WHOLE = "records"
Answer = TypeVar("Answer")


class OpenTables:
    """The snapshots of one lake's tables. One thread uses them at a time; others wait."""

    #: Whether this reader may mend the tables' logs.
    mends: ClassVar[bool] = True

    def __init__(self, place: Place | Path, whole: bool) -> None:
        """If the lake is `whole`, all tables were made: one that is not there is gone, and not
        empty."""
        self._whole = whole
        self._root = place_of(place)
        self._snapshots: dict[str, DeltaTable] = {}
        self._logs: dict[str, DeltaLog] = {}
        self._marks: dict[str, Hashable | None] = {}
        self._reached_by: dict[str, Mapping[str, str] | None] = {}
        self._absent: set[str] = set()
        #: Tables to be checked for new commits when they are next asked for.
        self._unsure: set[str] = set()
        self._use = threading.RLock()

    def doubt(self, besides: Iterable[str] = ()) -> None:
        """Check all tables that are known, and others, for new commits when next asked for."""
        self._unsure = self._absent | {*self._snapshots} | {*besides}

    def _look_again(self, tables: Collection[str]) -> set[str]:
        """Bring tables up to date, or close them, after new commits, each once after `doubt`;
        returns those that were out of date."""
        asked = self._unsure.intersection(tables)
        newest = self._of_each(self._is_newest, asked)
        old = {table for table in asked if not newest[table]}
        went_on = {table for table in old - {_WHOLE} if newest[table] is False}
        for table in old - went_on:
            self._snapshots.pop(table, None)
        self._of_each(self._bring_up, went_on)
        self._absent -= old
        self._unsure -= asked
        return old

    def open_missing(self, tables: Collection[str], *besides: Callable[[], None]) -> None:
        """In a store, open the tables that are not open, side by side, and make other calls
        `besides`; elsewhere each is opened when it is read."""
        if self._root.in_store:
            missing = {*tables} - self._snapshots.keys() - self._absent
            calls: list[Callable[[], None]] = [
                *(partial(self._find, table) for table in missing),
                *besides,
            ]
            side_by_side(lambda call: call(), calls, _AT_ONCE)

    def _of_each(self, ask: Callable[[str], Answer], tables: Collection[str]) -> dict[str, Answer]:
        """The answer for each table; in a store, asked side by side."""
        if not self._root.in_store:
            return {table: ask(table) for table in tables}
        return dict(zip(tables, side_by_side(ask, tables, _AT_ONCE), strict=True))

    def _is_newest(self, table: str) -> bool | None:
        """Whether a table has no newer version, or is still absent; None where it must be opened
        anew: one opened with credentials renewed since can no longer be read."""
        delta = self._snapshots.get(table)
        if delta is None:
            return None if has_table(self._root, table) else True
        if self._root.options != self._reached_by[table]:
            return None
        return self._log(table).is_newest(delta.version(), self._marks[table])

    def _bring_up(self, table: str) -> None:
        """Read the commits that a table got since it was opened, and only those."""
        delta = self._snapshots.pop(table)
        before = delta.version()
        try:
            self._log(table).follow(delta)
        except (DeltaError, OSError):  # its log was cleaned up meanwhile: it is opened anew
            return
        if delta.version() > before and not BARRED_FEATURES & features_of(delta.protocol()):
            self.keep(table, delta)

    def snapshot(self, table: str) -> DeltaTable | None:
        """A table as this reader has it; None where the lake has no table of that name yet. Raises
        LakeError for a table whose files are not its rows."""
        with self._use:
            self._look_again((table,))
            if table not in self._snapshots.keys() | self._absent:
                self._find(table)
            return self._snapshots.get(table)

    def _find(self, table: str) -> None:
        """Open a table, if the lake has it. Raises LakeError where it had it."""
        delta = self._if_there(table, lambda: self.opened(table))
        if delta is None and self._whole:
            raise LakeError(
                f"table {table} of the lake at {self._root} is not there any more; mount the disk "
                "that it is on, or put it back"
            )
        if delta is None:
            self._absent.add(table)
        else:
            self.keep(table, delta)

    def _if_there(self, table: str, opened: Callable[[], DeltaTable]) -> DeltaTable | None:
        """What `opened` returns; None without such a table. In a store, opening it tells."""
        if not self._root.in_store:
            return opened() if has_table(self._root, table) else None
        try:
            return opened()
        except TableNotFoundError:
            return None

    def opened(self, table: str) -> DeltaTable:
        """An existing table, as of now. Raises LakeError where its files are not its rows."""
        delta = self._log(table).opened()
        if barred := BARRED_FEATURES & features_of(delta.protocol()):
            raise LakeError(
                f"table {table} of the lake at {self._root} has {', '.join(sorted(barred))}, "
                "which only Spark reads: ask with --engine spark"
            )
        return delta

    def _log(self, table: str) -> DeltaLog:
        """The log of a table; kept, since it remembers what a store answered."""
        if table not in self._logs:
            place = self._root / table
            copies = self._root.in_store and self.mends
            self._logs[table] = LogCopy(place) if copies else DeltaLog(place, self.mends)
        return self._logs[table]

    def keeps(self, table: str) -> bool:
        """Whether a table is open."""
        return table in self._snapshots

    def held(self, table: str) -> OpenTable | None:
        with self._use:
            delta = None if table in self._unsure else self._snapshots.get(table)
            return None if delta is None else OpenTable(delta, self._log(table))

    def keep(self, table: str, delta: DeltaTable) -> None:
        """Read a table from this snapshot until `refresh`."""
        # After `refresh`, these tell whether it is still the newest.
        self._marks[table] = self._log(table).mark_of(delta.version())
        self._reached_by[table] = self._root.options
        self._snapshots[table] = delta
