"""What `maintain` and `forget` do to one table, whichever kind of lake it is in."""

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
    """How many rows went, and how many came in their place."""

    removed: int
    added: int


class TableUpkeep(Protocol):
    """One table, kept by the engine that commits to it."""

    @property
    def reader(self) -> Reader:
        """What answers questions about the table, as of now."""

    def size(self) -> TableSize:
        """How large it is."""

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Give the table properties."""

    def rewrite(self, query: str, frames: Frames = NONE, **args: object) -> Rewritten:
        """Run `sql/queries/<query>.sql`: a DELETE, or a MERGE that deletes what it matches and may
        insert what it does not. What others append meanwhile stays."""

    def compact(self) -> None:
        """Make few large files of many small ones."""

    def vacuum(self, hours: int) -> None:
        """Remove files that no version has needed for so many hours. 0 hours is for a lake that no
        process writes to."""
