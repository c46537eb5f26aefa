"""What the process that asks about groups answers, line by line.

Of hundreds of groups that rest, turn for turn the same tens of thousands of positions are told: a
line that a group had before is not read again, and stands for the same objects.
"""

import json
from collections.abc import Collection
from typing import Any

from mirrorlake.offsets.positions import Committed


class GroupAnswers:
    """Reads lines, and keeps those of groups with positions. For one thread at a time."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[str, dict[str, Any]]] = {}
        self._lines: dict[str, str] = {}  # of each group the newest one
        self._asked: frozenset[str] = frozenset()

    def read(self, line: str) -> tuple[str, dict[str, Any]] | None:
        """The group and what is answered about it, which nothing may change: `positions` are by
        (topic, partition). None for the end of an answer. Raises ValueError for half a line."""
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
        """Forget all groups but those that are asked about now, and those of the time before."""
        kept, self._asked = self._asked.union(groups), frozenset(groups)
        for group in self._lines.keys() - kept:
            del self._read[self._lines.pop(group)]
