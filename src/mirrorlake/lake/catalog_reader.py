"""A catalog's own tables, whose files are at hand, read by DuckDB as those in a folder."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from mirrorlake.errors import LakeError, first_line
from mirrorlake.lake.catalog_files import CatalogFiles, NotedFiles
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.folder import has_table
from mirrorlake.lake.properties import PROPERTY

_AT_ONCE = 8
_ASK_SPARK = "ask with --engine spark"
#: How delta-rs calls a table whose newest commits are not all in its log.
_CATALOG_COMMITS = "catalog-managed table"


class CatalogReader(DuckLake):
    """All tables are opened at once, to know that each is what the catalog said, and stays what it
    was, by the id that a table is made with. Raises LakeError for one that is not, or that only
    Spark reads."""

    def __init__(
        self, files: CatalogFiles, checkpoints: Path, ids: Mapping[str, str] | None = None
    ) -> None:
        """`ids` are those that were noted; None, and the catalog has just said where they lie."""
        super().__init__(files.place, checkpoints)
        self.files = files
        self._ids = dict(ids or {})
        self.reopen()

    @property
    def noted(self) -> NotedFiles:
        """What there is to note."""
        return NotedFiles(self.files, self._ids)

    @property
    def lake_id(self) -> str | None:
        """See `Lake.stored_id`: as the log of `records` says."""
        return self._snapshots["records"].metadata().configuration.get(PROPERTY)

    def reopen(self) -> None:
        """What is read from now on is as of now, see `refresh`; and what was committed to is what
        it was. Raises LakeError."""
        self.refresh()
        missing = [table for table in TABLES if not self.keeps(table)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            opened = dict(zip(missing, pool.map(self.opened, missing), strict=True))
        for table, delta in opened.items():
            self.keep(table, delta)
            self._ids.setdefault(table, str(delta.metadata().id))

    def opened(self, table: str) -> DeltaTable:
        """See `DuckLake.opened`. Raises LakeError for another table than the one that is known."""
        if not has_table(self.files.place, table):
            raise LakeError(f"table {table} is not at {self.files.root} any more; {_ASK_SPARK}")
        try:
            delta = super().opened(table)
        except (DeltaError, OSError) as error:
            raise LakeError(
                f"table {table} at {self.files.root} {_why_not(error)}; {_ASK_SPARK}"
            ) from error
        if self._ids.get(table, delta.metadata().id) != delta.metadata().id:
            raise LakeError(
                f"table {table} at {self.files.root} was made again since mirrorlake run noted "
                f"where it lies; start that again, or {_ASK_SPARK}"
            )
        return delta


def _why_not(error: Exception) -> str:
    """Why delta-rs does not open a table: mostly for the feature `catalogManaged`
    (https://github.com/delta-io/delta/blob/master/protocol_rfcs/catalog-managed.md)."""
    if _CATALOG_COMMITS in str(error):
        return "has commits that only its catalog knows"
    return f"cannot be opened here ({first_line(error)})"
