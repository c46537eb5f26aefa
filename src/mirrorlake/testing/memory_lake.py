"""A lake in memory: keeps what is appended, and answers queries with what it was given."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame

from mirrorlake.errors import LakeError
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Frames, QueryRows


class MemoryRows:
    """The answer to a query, as much of a DataFrame as `collect` is."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = list(rows)

    def collect(self) -> list[Mapping[str, Any]]:
        """All rows; columns are read by name."""
        return self._rows


class MemoryLake(Lake):
    """Stands for a lake where code appends rows and asks the package's queries; runs no SQL, and has no session.

    Attributes:
        appended: rows that were appended, by table.
        answers: the rows that a query answers with, by its name in `sql/queries`; one that is not there is an error.
        asked: how often each query was asked.
    """

    def __init__(self, answers: Mapping[str, Sequence[Mapping[str, Any]]] | None = None) -> None:
        self.appended: dict[str, list[dict[str, Any]]] = {}
        self.answers: dict[str, Sequence[Mapping[str, Any]]] = dict(answers or {})
        self.asked: Counter[str] = Counter()
        self.directory: Path | None = None
        self.schema = "memory"
        self._versions: dict[tuple[str, str], int] = {}

    def append(self, table: str, rows: pa.Table, application: str | None = None, version: int = 0) -> None:
        """Append rows; of an application once for each version, as a lake does."""
        if application is not None:
            if version <= self._versions.get((table, application), -1):
                return
            self._versions[table, application] = version
        self.appended.setdefault(table, []).extend(rows.to_pylist())

    def query(self, name: str, **args: object) -> DataFrame:
        """The rows that were given for a query, whatever its arguments. Raises LakeError where none were."""
        self.asked[name] += 1
        if name not in self.answers:
            raise LakeError(f"the lake in memory has no answer to query {name}; give it one in answers[{name!r}]")
        return cast(DataFrame, MemoryRows(self.answers[name]))

    def query_rows(self, name: str, frames: Frames | None = None, **args: object) -> QueryRows:
        """The same as `query`."""
        self.query(name, **args)
        return QueryRows(dict(row) for row in self.answers[name])
