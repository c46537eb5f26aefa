"""What became of every entry: carried over, not needed, or not supported. None is left out."""

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
    """Collects verdicts while files are read. An entry may have several: it may serve two
    clusters. What stands in one place of a file has one row, whatever was made of it."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._verdicts = {entry.place: _Verdict() for entry in entries}
        self._follows: list[tuple[Entry, Entry]] = []
        self.arrives: list[str] = []
        self.notes: list[str] = []

    def carry(self, entry: Entry, to: str) -> None:
        """Say under which key of the topology the entry's value went on."""
        _append(self._verdicts[entry.place].to, to)

    def skip(self, entry: Entry, reason: str) -> None:
        """Say why nothing is lost without the entry."""
        _append(self._verdicts[entry.place].not_needed, reason)

    def refuse(self, entry: Entry, reason: str) -> None:
        """Say why the entry's meaning is lost, and what to do."""
        _append(self._verdicts[entry.place].not_supported, reason)

    def follow(self, entry: Entry, other: Entry) -> None:
        """Say that what becomes of `other` becomes of `entry`, which means the same."""
        self._follows.append((entry, other))

    def note(self, text: str) -> None:
        """Say something that concerns no single entry."""
        _append(self.notes, text)

    def differs(self, text: str) -> None:
        """Say how what arrives at the target is other than what MirrorMaker brings: that comes
        first."""
        _append(self.arrives, text)

    def as_document(self) -> dict[str, Any]:
        """Give the report for `--json`: carried, not_needed, not_supported, notes; among these what
        arrives comes first."""
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
