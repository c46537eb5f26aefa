"""Rows of `positions`: a sample's values, and which of them last while nothing happens. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

SampleRow = dict[str, Any]
"""A row of `positions`, by its columns."""
#: Columns that do not change while nothing happens to a partition.
_STANDING = (
    "source_end", "staged_end", "target_end", "target_topic", "mapped_end", "target_generation",
    "generation",
)  # fmt: skip


class SampleValues(NamedTuple):
    """The values of a sample; rows of earlier versions lack some. `lag_seconds` is left out: it
    grows by itself while a partition lags."""

    source_start: int | None
    source_end: int
    staged_end: int | None
    produced_end: int
    target_end: int | None
    target_topic: str | None
    mapped_end: int | None
    target_passed_end: int | None
    target_generation: int | None
    generation: int | None
    source_high_watermark: int | None
    transaction_since: datetime | None
    transaction_producer_id: int | None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "SampleValues":
        """The values of a row."""
        return cls(*(row[name] for name in cls._fields))

    def names_at_target(self) -> SampleRow:
        """What is known of an unsampled partition: name and generations at the target."""
        names = ("target_topic", "target_generation", "generation")
        return {name: getattr(self, name) for name in names}


def keep_known(row: SampleRow, before: SampleValues | None) -> None:
    """Keep what was known of a partition while nothing happens to it: a poll of a flow that was not
    caught up everywhere knows less of each. `before` was written last, if anything was."""
    if before is None or any(row[name] != getattr(before, name) for name in _STANDING):
        return
    row["produced_end"] = max(row["produced_end"], before.produced_end)
    if row["target_passed_end"] is None:
        row["target_passed_end"] = before.target_passed_end
