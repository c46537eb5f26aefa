"""A change that control made, or was refused: a row of `changes` (DESIGN.md, "Tables"). Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

#: The flow's name in `changes` for what was done to the lake and not for a flow.
WHOLE_LAKE = "*"
#: The kind of change under which `maintain` notes up to when it deletes rows of a table of history.
HISTORY_DELETED = "history"
ChangeOutcome = Literal["begun", "done", "refused", "skipped", "gone"]


@dataclass(frozen=True)
class Change:
    """What happened to one resource. `before` and `after` are texts, None where it did not exist.

    `skipped` means that the cluster has nothing of this kind, `gone` that another party had removed
    it before. `begun` is written before an ACL, or the topic of offset syncs, is made, so that its
    owner is known whenever the process dies; `policy` is that by which the flow named mirrors.
    """

    kind: str
    resource: str
    before: str | None = None
    after: str | None = None
    outcome: ChangeOutcome = "done"
    error: str | None = None
    policy: str | None = None


class ChangeLog(Protocol):
    """Where control records what it did, and reads what earlier runs recorded."""

    def record(self, flow: str, changes: Sequence[Change]) -> None:
        """Append changes; an empty sequence writes nothing."""
        ...

    def history(self, flow: str, kind: str) -> Sequence[Change]:
        """All different changes of a kind that any process ever recorded for a flow, oldest first.
        The same object as before, until something is recorded."""
        ...


class PendingChanges:
    """What was done for a flow, kept until the log takes it: it is not done a second time."""

    def __init__(self, log: ChangeLog, flow: str) -> None:
        self._log = log
        self._flow = flow
        self._rows: list[Change] = []

    def add(self, rows: Iterable[Change]) -> None:
        """Keep what was just done: it is recorded with the next changes."""
        self._rows += rows

    def record(self, rows: Iterable[Change] = ()) -> None:
        """Record these, behind those that were kept or that the log did not take before."""
        self.add(rows)
        if self._rows:
            self._log.record(self._flow, self._rows)
            self._rows = []


@dataclass
class MemoryLog:
    """A log that ends with the process: for tests, and for a dry run without a lake."""

    rows: list[tuple[str, Change]] = field(default_factory=list)

    def record(self, flow: str, changes: Sequence[Change]) -> None:
        """Append."""
        self.rows.extend((flow, change) for change in changes)

    def history(self, flow: str, kind: str) -> Sequence[Change]:
        """All changes of a kind that were recorded here for a flow."""
        return [change for name, change in self.rows if name == flow and change.kind == kind]
