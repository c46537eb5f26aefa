"""What became of every single entry: carried over, not needed, or not supported."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mirrorlake.mm2.importer.entries import Entry

UNKNOWN = (
    "mirrorlake does not know this key; neither MirrorMaker's own settings nor the client "
    "settings have it"
)


@dataclass
class _Verdict:
    to: list[str] = field(default_factory=list)
    not_needed: list[str] = field(default_factory=list)
    not_supported: list[str] = field(default_factory=list)


class Report:
    """Collects verdicts while files are read. An entry may have several, as it may serve two
    clusters; a place in a file has one row."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._verdicts = {entry.place: _Verdict() for entry in entries}
        self._follows: list[tuple[Entry, Entry]] = []
        self.arrives: list[str] = []
        self.notes: list[str] = []

    def carry(self, entry: Entry, to: str) -> None:
        """Report the topology key that the entry's value was carried to."""
        _append(self._verdicts[entry.place].to, to)

    def skip(self, entry: Entry, reason: str) -> None:
        """Report why nothing is lost without the entry."""
        _append(self._verdicts[entry.place].not_needed, reason)

    def refuse(self, entry: Entry, reason: str) -> None:
        """Report why the entry's meaning is lost, and what to do."""
        _append(self._verdicts[entry.place].not_supported, reason)

    def follow(self, entry: Entry, other: Entry) -> None:
        """Report for `entry` what is reported for `other`, which means the same."""
        self._follows.append((entry, other))

    def note(self, text: str) -> None:
        """Report something that concerns no single entry."""
        _append(self.notes, text)

    def differs(self, text: str) -> None:
        """Report how target records will differ from MirrorMaker's; these notes come first."""
        _append(self.arrives, text)

    def as_document(self) -> dict[str, Any]:
        """For `--json`: carried, not_needed, not_supported, notes, those of `differs` first."""
        for entry, other in self._follows:
            mine, theirs = self._verdicts[entry.place], self._verdicts[other.place]
            for name in ("to", "not_needed", "not_supported"):
                for text in getattr(theirs, name):
                    _append(getattr(mine, name), text)
        self._follows.clear()
        carried, not_needed, not_supported = [], [], []
        for (file, line, key), outcome in self._verdicts.items():
            place = {"file": file, "line": line, "key": key}
            if outcome.to:
                carried.append({**place, "to": ", ".join(outcome.to)})
            elif outcome.not_needed:
                not_needed.append({**place, "reason": "; ".join(outcome.not_needed)})
            elif not outcome.not_supported:
                outcome.not_supported.append(UNKNOWN)
            if outcome.not_supported:
                not_supported.append({**place, "reason": "; ".join(outcome.not_supported)})
        parts = {"carried": carried, "not_needed": not_needed, "not_supported": not_supported}
        return {**parts, "notes": [*self.arrives, *self.notes]}


def _append(texts: list[str], text: str) -> None:
    if text not in texts:
        texts.append(text)
