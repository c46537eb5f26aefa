"""An in-memory Delta lake: the stage with its commits and files, and the tables that are appended
to.

Kept from the real thing: a commit adds and removes files; what is removed stays readable until
VACUUM; commits are forgotten when the log is cleaned up, the snapshot is not; an append with an
application and a version happens once.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, NamedTuple

import pyarrow as pa

from mirrorlake.lake.owners import OWNER_NUMBERS, fenced
from mirrorlake.native.exact import split_times
from tests.simulation.steps import Steps

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TIME = pa.timestamp("us", tz="UTC")
RECORDS = pa.schema(
    [
        ("source_cluster", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", _TIME),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
        ("landed_at", _TIME),
        ("generation", pa.int32()),
        ("timestamp_ms", pa.int64()),
        ("header_names", pa.list_(pa.binary())),
    ]
)


class LakeFailed(Exception):
    """A commit or a query failed, as Spark says it."""


def lake_failed() -> Exception:
    """What a commit raises whose answer was lost."""
    return LakeFailed("DELTA_TIMED_OUT")


class Row(NamedTuple):
    """A staged record."""

    cluster: str
    topic: str
    partition: int
    generation: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Commit:
    """One version of the stage."""

    operation: str
    adds: tuple[str, ...]
    removes: tuple[str, ...] = ()


@dataclass
class Stage:
    """The table `records`."""

    steps: Steps
    catalog: bool = False
    commits: list[Commit] = field(default_factory=lambda: [Commit("CREATE TABLE", ())])
    files: dict[str, list[Row]] = field(default_factory=dict)
    #: Commits below this version are forgotten.
    known_from: int = 0
    _transactions: dict[str, int] = field(default_factory=dict)
    _batches: dict[str, pa.RecordBatch] = field(default_factory=dict)
    _named: int = 0
    #: An append that was called and has had no effect yet.
    in_flight: "tuple[Sequence[Sequence[Row]], str, int] | None" = None

    @property
    def version(self) -> int:
        """The newest version."""
        return len(self.commits) - 1

    def paths(self, version: int | None = None) -> list[str]:
        """The files of a version (the newest), in the order in which they came."""
        living: dict[str, None] = {}
        for commit in self.commits[: len(self.commits) if version is None else version + 1]:
            for path in commit.removes:
                living.pop(path, None)
            living.update(dict.fromkeys(commit.adds))
        return list(living)

    def rows(self, version: int | None = None) -> Iterator[Row]:
        """All rows of a version."""
        for path in self.paths(version):
            yield from self.files[path]

    def append(self, contents: Sequence[Sequence[Row]], application: str, number: int) -> None:
        """Land files, once for each application and number."""
        self.steps.need_room("stage files")
        paths = self._write(list(rows) for rows in contents if rows)
        # who dies here leaves files that no commit names
        self.steps.reach("stage files written", lake_failed)
        self.in_flight = (contents, application, number)
        self.steps.write("stage append", lake_failed)
        self.in_flight = None
        if not self.catalog and self._transactions.get(application, -1) > number:
            raise fenced("records", application, self._transactions[application], number)
        if self._transactions.get(application, -1) < number:
            # in a catalog Delta's sink skips it, and says nothing
            self._transactions[application] = number
            self.commits.append(Commit("STREAMING UPDATE", tuple(paths)))
        self.steps.reach("stage appended", lake_failed)

    def is_fenced(self, application: str) -> bool:
        """Whether nothing of an application is taken any more."""
        return self._transactions.get(application, -1) == 1 << 62

    def fence(self, application: str) -> None:
        """Commit no rows: the application's appends are not taken any more."""
        self.steps.write("stage fence", lake_failed)
        self._transactions[application] = 1 << 62
        self.commits.append(Commit("WRITE", ()))

    def optimize(self, per_file: int, reverse: bool) -> None:
        """Put the rows of all files into new ones: OPTIMIZE promises no order among them."""
        old = self.paths()
        if len(old) < 2:
            return
        parts = [self.files[path] for path in (reversed(old) if reverse else old)]
        groups = [parts[at : at + per_file] for at in range(0, len(parts), per_file)]
        self._commit("OPTIMIZE", [[row for part in group for row in part] for group in groups], old)

    def vacuum(self) -> None:
        """Remove files that the newest version does not need."""
        living = set(self.paths())
        for path in [path for path in self.files if path not in living]:
            del self.files[path]

    def clean_log(self) -> None:
        """Forget all commits but the newest."""
        self.known_from = self.version

    def remove(self, below: Mapping[tuple[str, int, int], int]) -> None:
        """Retention: delete rows below an offset of (topic, partition, generation)."""
        removes, contents = [], []
        for path in self.paths():
            kept = [row for row in self.files[path] if row.offset >= below.get(row[1:4], 0)]
            if len(kept) < len(self.files[path]):
                removes.append(path)
                contents.append(kept)
        if removes:
            self._commit("DELETE", [rows for rows in contents if rows], removes)

    def forget(self, gone: Collection[tuple[str, int, int, int]]) -> None:
        """Delete rows of (topic, partition, generation, offset), file by file, as a predicate
        does."""
        old = [
            path
            for path in self.paths()
            if any((*row[1:4], row.offset) in gone for row in self.files[path])
        ]
        kept = [
            [row for row in self.files[path] if (*row[1:4], row.offset) not in gone] for path in old
        ]
        if old:
            self._commit("DELETE", [rows for rows in kept if rows], old)

    def batch(self, path: str) -> pa.RecordBatch:
        """A file's rows as Arrow. Raises FileNotFoundError for one that is gone, or cannot be
        opened now."""
        self.steps.reach("open file", lambda: FileNotFoundError(f"FileNotFoundError: {path}"))
        if path not in self.files:
            raise FileNotFoundError(f"FileNotFoundError: {path}")
        if path not in self._batches:
            self._batches[path] = arrow(self.files[path])
        return self._batches[path]

    def _commit(
        self, operation: str, contents: Iterable[list[Row]], removes: Sequence[str]
    ) -> None:
        self.commits.append(Commit(operation, tuple(self._write(contents)), tuple(removes)))

    def _write(self, contents: Iterable[list[Row]]) -> list[str]:
        """Write files that no commit names yet."""
        paths = []
        for rows in contents:
            self._named += 1
            paths.append(f"/sim/records/{self._named}.parquet")
            self.files[paths[-1]] = rows
        return paths


def arrow(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows as the stage's columns."""
    now = [(row.timestamp % 1_000_000 + 1_000) * 1000 for row in rows]
    times = pa.chunked_array(
        [pa.array([row.timestamp for row in rows], pa.int64()).cast(pa.timestamp("ms", "UTC"))]
    )
    held, exact = split_times(times)
    beside = pa.nulls(len(rows), pa.int64()) if exact is None else exact.combine_chunks()
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row.cluster for row in rows], pa.string()),
            pa.array([row.topic for row in rows], pa.string()),
            pa.array([row.partition for row in rows], pa.int32()),
            pa.array([row.offset for row in rows], pa.int64()),
            held.cast(_TIME).combine_chunks(),
            pa.array([row.key for row in rows], pa.binary()),
            pa.array([row.value for row in rows], pa.binary()),
            pa.array(
                [[{"key": k, "value": v} for k, v in row.headers] or None for row in rows], HEADERS
            ),
            pa.array(now, _TIME),
            pa.array([row.generation for row in rows], pa.int32()),
            beside,
            pa.nulls(len(rows), pa.list_(pa.binary())),
        ],
        schema=RECORDS,
    )


class ParquetView:
    """A file as `stage_files.open_parquet` gives it: one row group, no statistics."""

    num_row_groups = 1

    class metadata:
        num_columns = num_rows = total_byte_size = 0

        @classmethod
        def row_group(cls, _index: int) -> Any:
            return cls

    def __init__(self, batch: pa.RecordBatch, steps: Steps) -> None:
        self._batch = batch
        self._steps = steps

    def __enter__(self) -> "ParquetView":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def iter_batches(
        self, _rows: int, columns: Sequence[str], **_: object
    ) -> Iterator[pa.RecordBatch]:
        rows = self._batch.select(list(columns))
        yield rows.slice(0, rows.num_rows // 2) if self._steps.ends_early("read file") else rows


@dataclass
class Tables:
    """The tables that are only appended to: rows as mappings, by table."""

    steps: Steps
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _transactions: dict[str, int] = field(default_factory=dict)

    def append(
        self, table: str, rows: pa.Table, application: str | None = None, version: int = 0
    ) -> None:
        """Append, once for each application and version; a smaller one than what is there is
        fenced."""
        if rows.num_rows == 0:
            return
        self.steps.write(f"{table} append", lake_failed)
        if application is not None and self._transactions.get(application, -1) > version:
            raise fenced(table, application, self._transactions[application], version)
        if application is None or self._transactions.get(application, -1) < version:
            if application is not None:
                self._transactions[application] = version
            self.rows.setdefault(table, []).extend(rows.to_pylist())
        self.steps.reach(f"{table} appended", lake_failed)

    def take_over(self, table: str, application: str, least: int) -> int:
        """Commit no rows, as a version of an application that lies far above all before."""
        self.steps.write(f"{table} fence", lake_failed)
        known = self._transactions.get(application)
        number = least if known is None else max(least, known + OWNER_NUMBERS)
        self._transactions[application] = number
        self.steps.reach(f"{table} fenced", lake_failed)
        return number

    def application_version(self, application: str) -> int | None:
        """How far an application has come."""
        return self._transactions.get(application)

    def of(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table."""
        return self.rows.setdefault(table, [])


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(timezone.utc)
