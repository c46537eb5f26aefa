"""The operators' log: rows of `changes` and `clusters`; what they must know, in `incidents`; and
how the topics of the sources were, in `states`."""

import threading
from collections.abc import Mapping, Sequence

from mirrorlake.lake.changes import Change
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Frame, Reader
from mirrorlake.lake.rising_times import time_behind, time_of_change
from mirrorlake.lake.states import States


class EventLog:
    """Appends to the operators' tables of a lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self.incidents = Incidents(lake)
        self.states = States(lake)
        self._histories: dict[tuple[str, str], tuple[int, Sequence[Change]]] = {}
        self._history_use = threading.RLock()

    def record(self, flow: str, changes: Sequence[Change]) -> None:
        """Record what control did, or was refused (`lake.changes.ChangeLog`)."""
        if not changes:
            return
        now = time_of_change(self._lake)
        rows = [{"flow": flow, "at": now, **vars(change)} for change in changes]
        self._lake.append("changes", rows_of("changes", rows))

    def history(self, flow: str, kind: str) -> Sequence[Change]:
        """All different changes of a kind that any process recorded for a flow, oldest first.

        As of now: the lake is read again if anything was recorded since; else the same object.
        """
        with self._history_use:
            newest = self._lake.version_of("changes")
            version, known = self._histories.get((flow, kind), (-1, ()))
            if version != newest:
                rows = self._lake.ask("changes_of", flow=flow, kind=kind)
                changes = tuple(Change(**row) for row in rows)
                known = known if known == changes else changes
                self._histories[flow, kind] = newest, known
            return known

    def clusters(self, ids: Mapping[str, str]) -> None:
        """Record which cluster each alias stands for now: at a time behind every row that has
        another cluster for the alias, or another alias for the cluster."""
        others = [
            row["last_seen"]
            for row in self._lake.ask_table("clusters")
            if (row["alias"] in ids or row["cluster_id"] in ids.values())
            and ids.get(row["alias"]) != row["cluster_id"]
        ]
        now = time_behind(max(others, default=None))
        rows = [(*pair, now) for pair in ids.items()]
        seen = Frame("alias STRING, cluster_id STRING, seen TIMESTAMP", rows)
        self._lake.change("clusters_seen", {"seen": seen})


class WrittenChanges:
    """What earlier runs recorded, for `plan`, which makes no lake. Without a lake, nothing."""

    def __init__(self, lake: Reader | None) -> None:
        self._lake = lake

    def record(self, flow: str, changes: Sequence[Change]) -> None:
        """A plan does nothing that could be recorded."""
        raise AssertionError("a plan must not change anything")

    def history(self, flow: str, kind: str) -> Sequence[Change]:
        """All different changes of a kind that were recorded for a flow, oldest first."""
        if self._lake is None:
            return ()
        return tuple(
            Change(**row) for row in self._lake.query_rows("changes_of", flow=flow, kind=kind)
        )
