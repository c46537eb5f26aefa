"""Commits of other programs to a lake that only mirrorlake may commit to: one at a URL, or with
names in a catalog. A table's log names the program that made a commit.

A running process checks all that come (`new_by_others`), and opens an incident for them; `status`
checks the newest of each table.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from functools import partial
from typing import NamedTuple

from mirrorlake.errors import ReplicationError
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.delta_log import DeltaLog
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import Place
from mirrorlake.lake.reader import NONE, OpenTable
from mirrorlake.threads import side_by_side

#: How many of a table's newest commits are checked where it is not known which are new: some
#: kilobytes each, and a request in a store.
NEWEST = 5
#: How `engineInfo` of our commits begins: of those by delta-rs, and of `lake/own_commits.py`.
_OURS = ("delta-rs", "mirrorlake")


class OtherCommit(NamedTuple):
    """A commit by another program: `engine` is its name for itself, `at` its time, in UTC."""

    table: str
    version: int
    engine: str
    operation: str
    at: datetime

    @property
    def error(self) -> ReplicationError:
        """The error that reports it."""
        when = f"{self.at:%Y-%m-%d %H:%M:%S} UTC"
        return ReplicationError(
            f"table {self.table} was committed to by {self.engine} ({self.operation}, version "
            f"{self.version}, {when}): only mirrorlake may write this lake, since another "
            "program's commit can take the place of one of ours; stop it, and let mirrorlake "
            "maintain do what it did"
        )


def other_commit(table: str, version: int, text: str) -> OtherCommit | None:
    """The commit of another program, from its text; None for one of ours. Pure."""
    lines = (line for line in text.split("\n") if line.startswith('{"commitInfo"'))
    info = json.loads(next(lines, '{"commitInfo": {}}'))["commitInfo"]
    engine = info.get("engineInfo") or "a program that does not say its name"
    if engine.startswith(_OURS):
        return None
    at = datetime.fromtimestamp(info.get("timestamp", 0) / 1000, timezone.utc)
    return OtherCommit(table, version, engine, info.get("operation", "unknown"), at)


def is_one_writer(root: Place, registered: bool) -> bool:
    """Whether only mirrorlake may commit to the lake at a place: it is in a store, or its tables
    are registered in a catalog, under whose names other programs could."""
    return registered or root.in_store


def newest_by_others(
    root: Place | None, registered: bool, held: Mapping[str, OpenTable] = NONE
) -> list[str]:
    """A sentence for each table and other program among newest commits to a lake that is only ours;
    for one in `held`, up to the open version. No other lake is read. Raises OSError."""
    if root is None or not is_one_writer(root, registered):
        return []
    by_table = side_by_side(partial(_newest_of, root, held), TABLES)
    return [commit.error.message for commits in by_table for commit in commits]


def _newest_of(root: Place, held: Mapping[str, OpenTable], table: str) -> list[OtherCommit]:
    if table in held:
        newest = held[table].delta.version()
        versions = range(max(0, newest + 1 - NEWEST), newest + 1)
        return _by_others(held[table].log, table, versions)
    log = DeltaLog(root / table)
    behind = max(-1, log.newest_checkpoint() - NEWEST)
    return _by_others(log, table, log.versions(behind)[-NEWEST:])


def _by_others(log: DeltaLog, table: str, versions: Iterable[int]) -> list[OtherCommit]:
    newest: dict[str, OtherCommit] = {}
    for version in versions:
        text = log.text(version)
        commit = None if text is None else other_commit(table, version, text)
        if commit is not None:
            newest[commit.engine] = commit
    return [*newest.values()]


def new_by_others(tables: PathTables) -> list[OtherCommit]:
    """Commits of other programs, since the last call, to tables that this process writes: the
    newest one of each table and program. Raises OSError; then the next call checks them again."""
    asked = {table: tables.not_own(table, NEWEST) for table in TABLES}
    found = [
        commit
        for table, (_, versions) in asked.items()
        for commit in _by_others(DeltaLog(tables.place / table), table, versions)
    ]
    for table, (version, _) in asked.items():
        if version >= 0:
            tables.looked_at(table, version)
    return found
