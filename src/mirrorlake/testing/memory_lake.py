"""An in-memory lake that keeps appended rows and answers queries with given rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from mirrorlake.errors import LakeError
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.owners import is_done, next_owner
from mirrorlake.lake.place import Place, place_of
from mirrorlake.lake.reader import NONE, Frame, Frames, QueryRows, Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Queries for the newest time of a table, answered from appended rows: table and column.
_NEWEST = {
    "newest_change": ("changes", "at"),
    "newest_incident": ("incidents", "at"),
    "newest_checkpoint": ("checkpoints", "checkpointed_at"),
    "newest_target": ("target_generations", "started_at"),
    "latest_sample": ("positions", "sampled_at"),
}


class MemoryLake(Lake):
    """Replaces a lake in code that appends rows and runs the package's queries; runs no SQL, and
    has no session.

    Attributes:
        appended: the appended rows, by table.
        answers: the rows of each query, by its name in `sql/queries`; any other query raises
            LakeError, unless it asks for the newest time of a table.
        asked: how often each query was run.
    """

    opens_files: bool = False

    def __init__(self, answers: Mapping[str, Sequence[Mapping[str, Any]]] | None = None) -> None:
        super().__init__(_no_session, "memory", None, None)
        self.appended: dict[str, list[dict[str, Any]]] = {}
        self.answers: dict[str, Sequence[Mapping[str, Any]]] = dict(answers or {})
        self.asked: Counter[str] = Counter()
        self._versions: dict[tuple[str, str], int] = {}

    @property
    def place(self) -> str:
        return "memory"

    @property
    def leases(self) -> Place:
        """See `Lake.leases`: there are none."""
        return place_of(self.checkpoints)

    @property
    def reader(self) -> Reader:
        return self

    def query_rows(self, name: str, frames: Frames = NONE, **args: object) -> QueryRows:
        """The rows given for a query, for any arguments. Raises LakeError if there are none."""
        self.asked[name] += 1
        if name in _NEWEST and name not in self.answers:
            table, column = _NEWEST[name]
            times = (row[column] for row in self.appended.get(table, ()))
            return QueryRows([{"at": max(filter(None, times), default=None)}])
        if name not in self.answers:
            raise LakeError(
                f"the lake in memory has no answer to query {name}; give it one in "
                f"answers[{name!r}]"
            )
        return QueryRows(dict(row) for row in self.answers[name])

    def create(self, table: str, properties: Mapping[str, str]) -> None:
        """See `Lake.create`: every table exists."""

    def properties(self, table: str) -> dict[str, str]:
        """See `Lake.properties`: no table has one."""
        return {}

    def features(self, table: str) -> set[str]:
        """See `Lake.features`: no table has one."""
        return set()

    def version_of(self, table: str) -> int:
        """See `Lake.version_of`: the number of appended rows."""
        return len(self.appended.get(table, ()))

    def change(self, name: str, frames: Mapping[str, Frame] = NONE, **args: object) -> None:
        """Raises LakeError: it runs no SQL."""
        raise LakeError(
            f"the lake in memory cannot run {name}, which changes rows; use a lake in a folder"
        )

    def upkeep(self, table: str) -> NoReturn:
        """Raises LakeError: there are no files to maintain."""
        raise LakeError(f"the lake in memory cannot keep {table}; use a lake in a folder")

    def fence(self, table: str, application: str, version: int) -> None:
        self._numbered(table, application, version)

    def take_over(self, table: str, application: str, least: int) -> int:
        number = next_owner(self._versions.get((table, application)), least)
        self._versions[table, application] = number
        return number

    def application_version(self, table: str, application: str) -> int | None:
        return self._versions.get((table, application))

    def _find(self, table: str) -> None:
        """Nothing to do: there is no session."""

    def _commit(
        self, table: str, rows: pa.Table, application: str | None = None, version: int = 0
    ) -> None:
        if application is None or self._numbered(table, application, version):
            self.appended.setdefault(table, []).extend(rows.to_pylist())

    def _numbered(self, table: str, application: str, version: int) -> bool:
        """Whether an application has not reached this version yet. Raises Fenced beyond it."""
        done = is_done(table, application, self._versions.get((table, application)), version)
        self._versions[table, application] = version
        return not done


def _no_session() -> "NoReturn | SparkSession":
    raise LakeError("a lake in memory has no Spark session; use a lake in a folder")
