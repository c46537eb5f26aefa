"""Counts the commits of a lake, and what they bring, for a process that is measured."""

from collections.abc import Iterable
from typing import NamedTuple


class Landed(NamedTuple):
    """What a commit brought of one partition of a source; bytes are Arrow's, of all columns."""

    topic: str
    partition: int
    records: int
    bytes: int


class LakeMeter:
    """Counts nothing; a process that is measured has one that does (`metrics/recorder.py`). Called
    from any thread; raises nothing."""

    def committed(self, table: str, seconds: float) -> None:
        """A commit of a table took so long."""

    def landed(self, cluster: str, landed: Iterable[Landed]) -> None:
        """Records of a source cluster are in the lake."""
