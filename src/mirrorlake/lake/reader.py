"""The port by which a lake is read: one text of SQL, Spark's dialect, whichever engine answers.

`lake.lake.Lake` reads by Spark, `lake.duck.DuckLake` by DuckDB, `lake.warehouse.WarehouseLake` by a
SQL warehouse. Times in rows are in UTC, and without a zone.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from mirrorlake.lake.definitions import sql_text

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

    from mirrorlake.lake.delta_log import DeltaLog
    from mirrorlake.lake.place import Place


class QueryRows(list[dict[str, Any]]):
    """Rows, each a mapping of column to value, and the names of the columns, which are there
    without a row too."""

    def __init__(self, rows: Iterable[dict[str, Any]] = (), columns: Sequence[str] = ()) -> None:
        super().__init__(rows)
        self.columns = tuple(columns)


@dataclass(frozen=True)
class Frame:
    """Rows that a statement is given, named `{frame}` in its text: names of columns with Spark's
    types, such as `topic STRING, partition INT`, and values."""

    layout: str
    rows: Sequence[tuple[Any, ...]]

    @classmethod
    def of(cls, layout: str, objects: Iterable[object]) -> "Frame":
        """The attributes of objects that have the columns' names."""
        names = [name for name, _ in cls(layout, ()).columns]
        return cls(layout, [tuple(getattr(each, name) for name in names) for each in objects])

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Each column's name and type."""
        return [(name, kind) for name, kind in map(str.split, self.layout.split(","))]


#: The layout of frames of ranges of offsets (inclusive) of generations of partitions.
OFFSET_RANGES = "topic STRING, partition INT, generation INT, first BIGINT, last BIGINT"
#: The same of single records: their offsets, each in a generation or a newer one.
SINGLE_OFFSETS = "topic STRING, partition INT, offset BIGINT, since INT"
#: Frames by name: rows, or the text of a query, which may use the parameters of the statement.
Frames = Mapping[str, "Frame | str"]
#: Values of a statement's `:named` parameters.
Args = Mapping[str, object]
NONE: Mapping[str, Any] = MappingProxyType({})
"""Neither frames nor parameters."""


def one_of(column: str, names: Iterable[str]) -> tuple[str, dict[str, object]]:
    """The condition that a column holds one of some names, and its parameters."""
    parameters: dict[str, object] = {
        f"name{number}": name for number, name in enumerate(sorted(names))
    }
    return f"{column} IN ({', '.join(f':{name}' for name in parameters)})", parameters


class OpenTable(NamedTuple):
    """A table as a reader has it open, and its log, of which it may have read what counts."""

    delta: "DeltaTable"
    log: "DeltaLog"


class Reader(ABC):
    """A lake that is read. `engine` is what the engine is called in a sentence, `directory` where
    its files are, None in a catalog."""

    engine: ClassVar[str]
    directory: "Place | None"

    @property
    @abstractmethod
    def checkpoints(self) -> Path:
        """Where streaming checkpoints live, and the copy of the index of the stage. Raises
        LakeError where that is not known."""

    @abstractmethod
    def rows(
        self, text: str, args: Args = NONE, frames: Frames = NONE, limit: int | None = None
    ) -> QueryRows:
        """Run a query in which bare names mean this lake's tables and views; `args` fills `:named`
        parameters. Raises InputError for one that cannot be run, saying why."""

    @abstractmethod
    def arrow(self, text: str, args: Args = NONE, frames: Frames = NONE) -> "pa.RecordBatchReader":
        """The same as `rows`, for results of any size: times have their zone, and rows come in
        batches."""

    @abstractmethod
    def refresh(self) -> None:
        """What is read from now on is as of now; until then, all is as of the first reading of each
        table."""

    def open_together(self, names: Collection[str]) -> None:  # noqa: B027 - most wait for no store
        """Tables and views that are about to be asked for: where an answer of the lake's store
        takes its time, their tables are opened side by side. They are ready to be asked then."""

    def held(self, table: str) -> OpenTable | None:
        """A table as this reader has it open, until `refresh`; None where it has not, or reads by
        something else."""
        return None

    def query_rows(self, name: str, frames: Frames = NONE, **args: object) -> QueryRows:
        """Run `sql/queries/<name>.sql` of the package."""
        return self.rows(sql_text("queries", name), args, frames)

    def table_rows(self, table: str) -> QueryRows:
        """All rows of a small table or view."""
        return self.rows(f"SELECT * FROM {table}")

    def with_all_columns(self, table: str) -> str:
        """The text of a query that gives a table with all columns of its newest layout, which it
        has once it is opened, unless a reader knows better."""
        return f"SELECT * FROM {table}"
