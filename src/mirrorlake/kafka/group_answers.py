"""The answers of the process that queries groups, line by line.

Hundreds of idle groups report the same tens of thousands of positions turn after turn: a line that
a group had before is not parsed again, and yields the same objects.
"""

import json
from collections.abc import Collection
from typing import Any

from mirrorlake.offsets.positions import Committed


class GroupAnswers:
    """Parses lines, and caches those of groups with positions. For one thread at a time."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[str, dict[str, Any]]] = {}
        self._lines: dict[str, str] = {}  # the newest line of each group
        self._asked: frozenset[str] = frozenset()

    def read(self, line: str) -> tuple[str, dict[str, Any]] | None:
        """The group and its answer, which must not be modified: `positions` are by (topic,
        partition). None for the end of an answer. Raises ValueError for a truncated line."""
        known = self._read.get(line)
        if known is not None:
            return known
        answer = json.loads(line)
        if "end" in answer:
            return None
        group = str(answer.pop("group"))
        if "positions" in answer:
            answer["positions"] = {
                (topic, partition): Committed(offset, metadata)
                for topic, partition, offset, metadata in answer["positions"]
            }
            self._read.pop(self._lines.get(group, ""), None)
            self._lines[group], self._read[line] = line, (group, answer)
        return group, answer

    def keep(self, groups: Collection[str]) -> None:
        """Forget all groups except those of this request and the one before."""
        kept, self._asked = self._asked.union(groups), frozenset(groups)
        for group in self._lines.keys() - kept:
            del self._read[self._lines.pop(group)]
