"""A catalog's own tables, whose files are at hand, read by DuckDB like those in a folder."""

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import ClassVar, TypeVar

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from mirrorlake.errors import LakeError, first_line
from mirrorlake.lake.catalog_files import CatalogFiles, NotedFiles
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.delta_log import DeltaLog, features_of
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.folder import has_table
from mirrorlake.lake.properties import PROPERTY
from mirrorlake.threads import side_by_side

Answer = TypeVar("Answer")
_ASK_SPARK = "ask with --engine spark"
#: What delta-rs calls a table whose newest commits are not all in its log.
_CATALOG_COMMITS = "catalog-managed table"


class CatalogReader(DuckLake):
    """Opens all tables at once, to check that each is the one that the catalog names, and stays the
    same, by the id that a table is made with. Raises LakeError for a table that is not, or that
    only Spark reads.

    Attributes:
        lost: whether such a table was met since.
    """

    mends: ClassVar[bool] = False  # what Spark writes, Spark mends

    def __init__(
        self, files: CatalogFiles, checkpoints: Path, ids: Mapping[str, str] | None = None
    ) -> None:
        """`ids` are the noted ids; None where the catalog itself has just named the place."""
        super().__init__(files.place, checkpoints)
        self.files = files
        self.lost = False
        self._newest: dict[str, tuple[DeltaTable, Hashable | None]] = {}
        self._ids = dict(ids or {})
        self.reopen()

    @property
    def noted(self) -> NotedFiles:
        """What is to be noted of these files."""
        return NotedFiles(self.files, self._ids)

    @property
    def lake_id(self) -> str | None:
        """See `Lake.stored_id`: from the log of `records`."""
        return self._snapshots["records"].metadata().configuration.get(PROPERTY)

    def reopen(self) -> None:
        """Read as of now, as `refresh`; tables committed to must be the same. Raises LakeError."""
        self.refresh()
        with self._use:
            self._look_again(TABLES)
        missing = [table for table in TABLES if not self.keeps(table)]
        for table, delta in zip(missing, side_by_side(self.opened, missing), strict=True):
            self.keep(table, delta)
            self._ids.setdefault(table, str(delta.metadata().id))

    def held(self, _table: str) -> None:
        """See `Reader.held`: None, since any client may alter what was opened."""

    def version(self, table: str) -> int:
        """The newest version of a table. Raises LakeError."""
        return self._asked(table, lambda delta: delta.version())

    def application_version(self, table: str, application: str) -> int | None:
        """See `Lake.application_version`: by Delta's record, of any program. Raises LakeError."""
        return self._asked(table, lambda delta: delta.transaction_version(application))

    def properties(self, table: str) -> dict[str, str]:
        """See `Lake.properties`. Raises LakeError."""
        return self._asked(table, lambda delta: dict(delta.metadata().configuration))

    def features(self, table: str) -> set[str]:
        """See `Lake.features`. Raises LakeError."""
        return self._asked(table, lambda delta: features_of(delta.protocol()))

    def columns(self, table: str) -> set[str]:
        """The names of a table's columns. Raises LakeError."""
        return self._asked(table, lambda delta: {field.name for field in delta.schema().fields})

    def rows_of(self, table: str) -> pa.Table:
        """All rows of a small table. Raises LakeError."""
        return self._asked(table, lambda delta: delta.to_pyarrow_table())

    def _asked(self, table: str, question: Callable[[DeltaTable], Answer]) -> Answer:
        """Ask a table as of its newest commit; only commits that came since are read. They may show
        that the table can no longer be read here."""
        with self._use:
            try:
                return question(self._as_of_now(table))
            except (DeltaError, OSError) as error:
                self.lost = True
                raise self._unreadable(table, error) from error

    def _as_of_now(self, table: str) -> DeltaTable:
        log = DeltaLog(self.files.place / table)
        delta, mark = self._newest.get(table, (None, None))
        if delta is not None and mark and log.file_of(delta.version()).mark() == mark:
            delta.update_incremental()
        else:  # the log was cleaned up, or is another table's
            delta = self.opened(table)
        self._newest[table] = delta, log.file_of(delta.version()).mark()
        return delta

    def opened(self, table: str) -> DeltaTable:
        """See `DuckLake.opened`. Raises LakeError for a table other than the known one."""
        try:
            return self._checked(table)
        except LakeError:
            self.lost = True
            raise

    def _checked(self, table: str) -> DeltaTable:
        if not has_table(self.files.place, table):
            raise LakeError(f"table {table} is not at {self.files.root} any more; {_ASK_SPARK}")
        try:
            delta = super().opened(table)
        except (DeltaError, OSError) as error:
            raise self._unreadable(table, error) from error
        if self._ids.get(table, delta.metadata().id) != delta.metadata().id:
            raise LakeError(
                f"table {table} at {self.files.root} was made again since mirrorlake run noted "
                f"where it lies; start that again, or {_ASK_SPARK}"
            )
        return delta

    def _unreadable(self, table: str, error: Exception) -> LakeError:
        return LakeError(f"table {table} at {self.files.root} {_why_not(error)}; {_ASK_SPARK}")


def _why_not(error: Exception) -> str:
    """Why delta-rs does not open a table: mostly for the feature `catalogManaged`
    (https://github.com/delta-io/delta/blob/master/protocol_rfcs/catalog-managed.md)."""
    if _CATALOG_COMMITS in str(error):
        return "has commits that only its catalog knows"
    return f"cannot be opened here ({first_line(error)})"
