"""The port by which a lake is read: a query is one text in Spark's SQL, whichever engine answers.

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
    """Rows, each a mapping of column to value, and the columns' names, also without rows."""

    def __init__(self, rows: Iterable[dict[str, Any]] = (), columns: Sequence[str] = ()) -> None:
        super().__init__(rows)
        self.columns = tuple(columns)


@dataclass(frozen=True)
class Frame:
    """Rows that are given to a statement, whose text names them `{frame}`. `layout` has the names
    of the columns with Spark's types, such as `topic STRING, partition INT`."""

    layout: str
    rows: Sequence[tuple[Any, ...]]

    @classmethod
    def of(cls, layout: str, objects: Iterable[object]) -> "Frame":
        """A frame of objects: each column holds the attribute of its name."""
        names = [name for name, _ in cls(layout, ()).columns]
        return cls(layout, [tuple(getattr(each, name) for name in names) for each in objects])

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Each column's name and type."""
        return [(name, kind) for name, kind in map(str.split, self.layout.split(","))]


#: The layout of frames of offset ranges (inclusive), each in one generation of a partition.
OFFSET_RANGES = "topic STRING, partition INT, generation INT, first BIGINT, last BIGINT"
#: The layout of frames of single offsets, each in generation `since` or a newer one.
SINGLE_OFFSETS = "topic STRING, partition INT, offset BIGINT, since INT"
#: Frames by name: rows, or the text of a query, which may use the statement's parameters.
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
    """A table that a reader has open, and its log, parts of which it may have read already."""

    delta: "DeltaTable"
    log: "DeltaLog"


class Reader(ABC):
    """Reads lakes. `engine` is named in messages; `directory` has the files, None in a catalog."""

    engine: ClassVar[str]
    directory: "Place | None"

    @property
    @abstractmethod
    def checkpoints(self) -> Path:
        """The directory of streaming checkpoints and of the copy of the stage's index. Raises
        LakeError where it is not known."""

    @abstractmethod
    def rows(
        self, text: str, args: Args = NONE, frames: Frames = NONE, limit: int | None = None
    ) -> QueryRows:
        """Run a query in which bare names refer to this lake's tables and views; `args` fills
        `:named` parameters. Raises InputError, with the reason, for a query that cannot be run."""

    @abstractmethod
    def arrow(self, text: str, args: Args = NONE, frames: Frames = NONE) -> "pa.RecordBatchReader":
        """As `rows`, for results of any size: times keep their zone, and rows come in batches."""

    @abstractmethod
    def refresh(self) -> None:
        """Read as of now from here on. Until the next call, tables stay as first read."""

    def open_together(self, names: Collection[str]) -> None:  # noqa: B027 - most wait for no store
        """Open the tables behind some names side by side, where the lake's store takes time to
        answer, so that they are open for the queries that follow."""

    def held(self, table: str) -> OpenTable | None:
        """A table as this reader has it open, until `refresh`; None where it is not open."""
        return None

    def query_rows(self, name: str, frames: Frames = NONE, **args: object) -> QueryRows:
        """Run `sql/queries/<name>.sql` of the package."""
        return self.rows(sql_text("queries", name), args, frames)

    def table_rows(self, table: str) -> QueryRows:
        """All rows of a small table or view."""
        return self.rows(f"SELECT * FROM {table}")

    def with_all_columns(self, table: str) -> str:
        """The text of a query on a table with all columns of its newest layout. Opening a table
        adds them, except in readers that override this."""
        return f"SELECT * FROM {table}"
