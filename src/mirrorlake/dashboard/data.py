"""The dashboard's rows: each query runs read-only, bounded, and if its tables have new commits."""

import json
import logging
import math
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from functools import cache
from typing import Any

import pyarrow as pa

from mirrorlake.dashboard.model import Dashboard
from mirrorlake.dashboard.parts import Dataset
from mirrorlake.errors import InputError, LakeError
from mirrorlake.lake.definitions import TABLES, VIEWS, sql_text
from mirrorlake.lake.delta_log import DeltaLog
from mirrorlake.lake.place import Place
from mirrorlake.lake.reader import Reader as LakeReader

#: A data set with more rows than this is cut: to the newest, if there is a time column.
MAX_ROWS = 20_000

logger = logging.getLogger(__name__)


#: The newest commits of a query's tables; None if unknown.
DataVersion = tuple[tuple[str, int], ...] | None


def data_version(newest: Callable[[str], int] | None, query: str) -> DataVersion:
    """The version of a query's data, from the newest commits of its tables (`newest` is None in a
    catalog): with the same commits it returns the same rows, unless it depends on the time. Tables
    are found by name in its text and its views'; a false match only costs one more read."""
    words = _words(query)
    if newest is None or "current_timestamp" in words:
        return None
    return tuple((table, newest(table)) for table in TABLES if table in words)


def newest_of(directory: Place | None) -> Callable[[str], int] | None:
    """A function for the newest commit of a table in `directory`, read once; None in a catalog."""
    if directory is None:
        return None
    return cache(lambda table: DeltaLog(directory / table).newest())


def _words(text: str) -> set[str]:
    """The words of a text and of the views that it names; later views use earlier ones."""
    words = set(re.findall(r"\w+", text))
    for view in reversed(VIEWS):
        if view in words:
            words.update(re.findall(r"\w+", sql_text("views", view)))
    return words


def check_query(dataset: Dataset) -> None:
    """Refuse anything but a single query. Raises InputError.

    For a clear sentence: `bounded` puts the text where Spark's grammar allows only a query.
    """
    if not re.match(r"\s*(SELECT|WITH)\b", dataset.query, re.IGNORECASE) or ";" in dataset.query:
        raise InputError(
            f"dataset {dataset.name} of the dashboard must be one SELECT statement; it is only read"
        )


def bounded(dataset: Dataset, time_column: str | None, rows: int) -> str:
    """The statement to run: the data set's query as a subquery, with at most `rows` + 1 rows."""
    newest = "" if time_column is None else f"\nORDER BY `{time_column}` DESC"
    return f"SELECT * FROM (\n{dataset.query}\n){newest}\nLIMIT {rows + 1}"


def read_data(lake: LakeReader, dashboard: Dashboard, rows: int = MAX_ROWS) -> dict[str, Any]:
    """Run all queries once: see `DashboardReader`."""
    return DashboardReader(lake, dashboard, rows).read()


class DashboardReader:
    """Reads a dashboard's data sets, repeatedly; skips queries whose tables have no new commits."""

    def __init__(self, lake: LakeReader, dashboard: Dashboard, rows: int = MAX_ROWS) -> None:
        self._lake = lake
        self._dashboard = dashboard
        self._rows = rows
        self._known: dict[str, tuple[DataVersion, dict[str, Any]]] = {}

    def read(self) -> dict[str, Any]:
        """Returns {"at": ms, "seconds", "datasets": {name: {"columns", "rows", "cut"}}}.

        Rows are lists; times are ms since 1970 in UTC; `cut` says that there were more rows. Raises
        InputError for anything but a single query, LakeError for a query that cannot be run.
        """
        began = time.monotonic()
        self._lake.refresh()
        times = self._dashboard.time_columns()
        newest, datasets = newest_of(self._lake.directory), {}
        for dataset in self._dashboard.datasets:
            # before the query, so that no commit is missed
            mark = data_version(newest, dataset.query)
            datasets[dataset.name] = self._read(dataset, mark, times.get(dataset.name))
        now = datetime.now(timezone.utc)
        return {
            "at": int(now.timestamp() * 1000),
            "seconds": round(time.monotonic() - began, 2),
            "datasets": datasets,
        }

    def _read(self, dataset: Dataset, mark: DataVersion, time_column: str | None) -> dict[str, Any]:
        known = self._known.get(dataset.name)
        if known is not None and mark is not None and known[0] == mark:
            return known[1]
        check_query(dataset)
        try:
            table = self._lake.arrow(bounded(dataset, time_column, self._rows)).read_all()
        except InputError as error:
            raise LakeError(
                f"dataset {dataset.name} of the dashboard cannot be read: {error}"
            ) from error
        document = _document(table, self._rows)
        self._known[dataset.name] = (mark, document)
        return document


def _document(table: pa.Table, rows: int) -> dict[str, Any]:
    columns = [_plain(column) for column in table.columns]
    kept = [list(row) for row in zip(*(column[:rows] for column in columns), strict=True)]
    named = [{"name": field.name, "type": _type(field.type)} for field in table.schema]
    return {"columns": named, "rows": kept, "cut": table.num_rows > rows}


def _type(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "time"
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return "number" if numbers else "text"


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Values for JSON: times in ms, decimals as floating point, null for NaN and infinity."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", tz=column.type.tz), safe=False).cast(pa.int64())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [value if value is None or math.isfinite(value) else None for value in values]
    return values


#: Reading takes at most 1/SHARE of the time, whatever the interval.
SHARE = 4


class Snapshots:
    """The page's data, read again when a browser asks and the last answer is old enough.

    Without a browser only the first answer is read. Browsers share it; one reader works at a time.
    """

    def __init__(
        self,
        read: Callable[[], dict[str, Any]],
        seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._now = now
        self._seconds = seconds
        self._use = threading.Lock()
        self._answer: bytes | None = None
        self._read_again_at = 0.0

    def begin(self) -> None:
        """Read the first answer in the background. A failure is reported by the first browser's."""
        # not a daemon thread, like the server's: the process must not end while one is in DuckDB
        ThreadPoolExecutor(1, "the first rows of the dashboard").submit(self.newest)

    def newest(self) -> bytes:
        """The JSON document, at most `seconds` old unless reading is slow. Raises LakeError."""
        with self._use:
            if self._answer is None or self._now() >= self._read_again_at:
                began = self._now()
                self._answer = to_json(self._read())
                took = self._now() - began
                logger.info("the dashboard's data sets were read in %.1f s", took)
                self._read_again_at = began + max(self._seconds, SHARE * took)
            return self._answer


def to_json(document: object) -> bytes:
    """Compact JSON that is safe inside a page's script: no character of it can end the script."""
    text = json.dumps(
        document, separators=(",", ":"), ensure_ascii=False, default=str, allow_nan=False
    )
    for letter in "<\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text.encode()
