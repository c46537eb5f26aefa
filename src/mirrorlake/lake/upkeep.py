"""What `maintain` and `forget` do to one table, in any kind of lake."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mirrorlake.lake.reader import NONE, Frames, Reader


@dataclass(frozen=True)
class TableSize:
    """The files of a table's newest version."""

    files: int
    bytes: int


class Rewritten(NamedTuple):
    """How many rows were deleted, and how many were added in their place."""

    removed: int
    added: int


class TableUpkeep(Protocol):
    """One table, maintained by the engine that commits to it."""

    @property
    def reader(self) -> Reader:
        """The reader of the table, as of now."""

    def size(self) -> TableSize:
        """The table's size."""

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set properties of the table."""

    def rewrite(self, query: str, frames: Frames = NONE, **args: object) -> Rewritten:
        """Run `sql/queries/<query>.sql`: a DELETE, or a MERGE that deletes what it matches and may
        insert what it does not. What others append meanwhile stays."""

    def compact(self) -> None:
        """Join many small files into few large ones."""

    def vacuum(self, hours: int) -> None:
        """Remove files that no version needed for so many hours; 0: for a lake without writers."""
