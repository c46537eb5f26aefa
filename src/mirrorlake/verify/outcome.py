"""The outcome of a comparison: added up by range and by flow. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mirrorlake.verify.not_compared import NotCompared
from mirrorlake.verify.verdict import SUPERSEDED, WHOLE

#: How many rows of `audits` an outcome keeps: the newest ones.
MOST_ROWS = 20_000


@dataclass
class Outcome:
    """What was compared: ranges, records (of the stage), how many of these are in ranges without a
    difference, and how many were left out, by reason.

    `rows` are those of `audits`; `topics` are the names of compared topics, at both sides.
    `dropped_ranges` counts ranges whose rows are not kept, and `unlisted_differences` those that
    ranges with very many do not list. `held_up` is what was not compared, by flow; `on_the_way` may
    be on its way, until that is looked up.
    """

    ranges: int = 0
    records: int = 0
    proven: int = 0
    bytes_read: int = 0
    excused: Counter[str] = field(default_factory=Counter)
    differences: list[dict[str, Any]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)
    dropped_ranges: int = 0
    unlisted_differences: int = 0
    held_up: dict[str, list[NotCompared]] = field(default_factory=dict)
    on_the_way: dict[str, list[NotCompared]] = field(default_factory=dict)
    _before: dict[str, int] = field(default_factory=dict)

    @property
    def proven_before(self) -> int:
        """How many records were proven already and needed no comparison."""
        return sum(self._before.values())

    def note_proven_before(self, flow: str, count: int) -> None:
        """Note how many records of a flow were proven before. Only the first call counts: `watch`
        calls again, and what it has proven meanwhile was not proven before."""
        self._before.setdefault(flow, count)

    @property
    def not_compared(self) -> list[dict[str, Any]]:
        """What was selected and not compared, as an answer has it."""
        parts = (self.held_up, self.on_the_way)
        rows = [
            stretch.row(flow)
            for part in parts
            for flow, stretches in part.items()
            for stretch in stretches
        ]
        return sorted(rows, key=lambda row: (*_place(row), row["generation"], row["first_offset"]))

    def add_unranged(self, rows: Iterable[dict[str, Any]]) -> None:
        """Add differences outside of ranges, as of gone targets; `watch` passes them each time."""
        known = {(row["kind"], *_place(row)) for row in self.differences}
        rows = [*rows]
        self.differences += [row for row in rows if (row["kind"], *_place(row)) not in known]
        self.topics |= {row["topic"] for row in rows}

    def add(self, row: dict[str, Any], excused: Mapping[str, int]) -> None:
        """Add a range, by its row of `audits`."""
        self.ranges += 1
        self.records += row["stage_count"]
        if row["verdict"] in WHOLE:
            self.proven += row["stage_count"] - excused.get(SUPERSEDED, 0)
        self.bytes_read += row["byte_count"]
        self.excused.update(excused)
        place = {name: row[name] for name in ("flow", "topic", "partition")}
        self.differences += [{**place, **difference} for difference in row["differences"]]
        self.rows.append(row)
        self.unlisted_differences += row["untold_differences"]
        self.dropped_ranges += len(self.rows[:-MOST_ROWS])
        del self.rows[:-MOST_ROWS]  # `watch` goes on for days


def _place(row: Mapping[str, Any]) -> tuple[str, str, int]:
    return row["flow"], row["topic"], row["partition"]
