"""A lake in a catalog, read by a SQL warehouse: the third adapter of the port `lake.reader`.

No session is started: texts go to the warehouse as they are, in its own dialect. Needs
`mirrorlake[databricks]`, the connector of
https://docs.databricks.com/dev-tools/python-sql-connector.html.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from sqlglot import exp

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import InputError, LakeError, first_line
from mirrorlake.extras import needs
from mirrorlake.lake.place import Place
from mirrorlake.lake.reader import NONE, Args, Frame, Frames, QueryRows, Reader
from mirrorlake.lake.spark_rows import rows_from_arrow

#: Rows that are fetched at once.
_AT_ONCE = 100_000
_NAMED = re.compile(r"(?<![:\w]):(\w+)")


class Cursor(Protocol):
    """The part of the connector's cursor that is used here."""

    def execute(self, text: str, parameters: dict[str, Any]) -> object:
        """Run a statement; `parameters` fills `:named` ones."""

    def fetchmany_arrow(self, size: int) -> pa.Table:
        """The next rows, at most `size`; none at the end."""

    def close(self) -> None:
        """Release the result."""


class Connection(Protocol):
    """The part of its connection that is used here."""

    def cursor(self) -> Cursor:
        """A cursor for one statement."""


class WarehouseLake(Reader):
    """The tables of one catalog's schema. `connect` is called for the first statement; `errors` are
    the connector's exceptions."""

    engine: ClassVar[str] = "the SQL warehouse"

    def __init__(
        self, connect: Callable[[], Connection], errors: tuple[type[Exception], ...]
    ) -> None:
        self.directory: Place | None = None
        self._connect = connect
        self._errors = errors

    @property
    def checkpoints(self) -> Path:
        """See `Reader.checkpoints`: a process with a warehouse neither lands nor produces."""
        raise LakeError("a lake that a SQL warehouse reads has no checkpoints here")

    @cached_property
    def _connection(self) -> Connection:
        try:
            return self._connect()
        except self._errors as error:
            raise LakeError(
                f"the SQL warehouse cannot be reached ({first_line(error)}); check lake.warehouse "
                "in the topology file, or ask with --engine spark"
            ) from error

    def refresh(self) -> None:
        """See `Reader.refresh`: each statement sees the newest versions."""

    def rows(
        self, text: str, args: Args = NONE, frames: Frames = NONE, limit: int | None = None
    ) -> QueryRows:
        text = with_frames(text, frames)
        text = text if limit is None else f"SELECT * FROM ({text}\n) LIMIT {limit}"
        return rows_from_arrow(pa.concat_tables(self._parts(text, args)))

    def arrow(self, text: str, args: Args = NONE, frames: Frames = NONE) -> pa.RecordBatchReader:
        parts = self._parts(with_frames(text, frames), args)
        first = next(parts)
        batches = (batch for part in chain([first], parts) for batch in part.to_batches())
        return pa.RecordBatchReader.from_batches(first.schema, batches)

    def _parts(self, text: str, args: Mapping[str, object]) -> Iterator[pa.Table]:
        """The result in parts; the first part comes even without a row."""
        named = set(_NAMED.findall(text))
        cursor = self._connection.cursor()
        try:
            cursor.execute(text, {name: value for name, value in args.items() if name in named})
            part = cursor.fetchmany_arrow(_AT_ONCE)
            yield part
            if not part.num_columns:
                return  # a statement without a result
            while part.num_rows and (part := cursor.fetchmany_arrow(_AT_ONCE)).num_rows:
                yield part
        except self._errors as error:
            raise InputError(first_line(error)) from error
        finally:
            cursor.close()


def warehouse_lake(location: Location, resolve: Callable[[str], str]) -> WarehouseLake:
    """The lake of a topology file with a warehouse; `resolve` turns references into values.

    Raises MissingExtra where the connector is not installed.
    """
    warehouse = location.warehouse
    assert warehouse is not None
    with needs("databricks"):
        connector, errors = import_module("databricks.sql"), import_module("databricks.sql.exc")

    def connect() -> Connection:
        made: Connection = connector.connect(
            server_hostname=resolve(warehouse.server_hostname),
            http_path=resolve(warehouse.http_path),
            access_token=resolve(warehouse.access_token.get_secret_value()),
            catalog=location.catalog,
            schema=location.schema_name,
            session_configuration={"timezone": "UTC"},
        )
        return made

    return WarehouseLake(connect, (errors.Error,))


def with_frames(text: str, frames: Frames) -> str:
    """A text with its frames in it: queries as they are, rows as VALUES."""
    for name, frame in frames.items():
        text = text.replace(
            f"{{{name}}}", f"({_values(frame) if isinstance(frame, Frame) else frame})"
        )
    return text


def _values(frame: Frame) -> str:
    names = [name for name, _ in frame.columns]
    columns = ", ".join(f"CAST(`{name}` AS {kind}) AS `{name}`" for name, kind in frame.columns)
    rows = ", ".join(map(_row, frame.rows)) or _row([None] * len(names))
    given = f"VALUES {rows} AS given({', '.join(f'`{name}`' for name in names)})"
    return f"SELECT {columns} FROM {given}" + ("" if frame.rows else " WHERE false")


def _row(values: Sequence[Any]) -> str:
    return f"({', '.join(exp.convert(value).sql(dialect='databricks') for value in values)})"
