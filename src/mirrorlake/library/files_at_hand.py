"""A catalog's own tables, read without a session if their files are accessible."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import InputError, LakeError
from mirrorlake.lake.catalog_files import NotedFiles, noted_files
from mirrorlake.lake.opening import schema_in_catalog

if TYPE_CHECKING:
    from mirrorlake.lake.catalog_reader import CatalogReader

logger = logging.getLogger(__name__)


class FilesAtHand:
    """The tables of a schema whose file locations the writing process has noted.

    Attributes:
        why_not: why `reader` is None.
    """

    def __init__(self, location: Location, directory: Path) -> None:
        self._schema = schema_in_catalog(location)
        place = location.checkpoints
        self._checkpoints = None if place is None else (directory / place).resolve()
        self._reader: CatalogReader | None = None
        self.why_not = ""

    @property
    def reader(self) -> "CatalogReader | None":
        """The tables as of now; None, and logged, if their files are not accessible."""
        try:
            noted = self._noted()
            if self._reader is None or self._reader.noted != noted:
                self._reader = self._opened(noted)
            self._reader.reopen()
        except (InputError, OSError) as error:
            if self.why_not != str(error):
                logger.info("the files of the lake are not read without a session: %s", error)
            self.why_not = str(error)
            return None
        return self._reader

    def _noted(self) -> NotedFiles:
        if self._checkpoints is None:
            raise LakeError(
                "where its files are is noted in lake.checkpoints, which is not known here; ask "
                "with --engine spark"
            )
        noted = noted_files(self._checkpoints, self._schema)
        if noted is None:
            raise LakeError(
                f"where its files are is not noted in {self._checkpoints}, as `mirrorlake run` "
                "does where it can read them; ask with --engine spark"
            )
        return noted

    def _opened(self, noted: NotedFiles) -> "CatalogReader":
        from mirrorlake.lake.catalog_reader import CatalogReader  # importing DuckDB takes time

        assert self._checkpoints is not None
        return CatalogReader(noted.files, self._checkpoints, noted.ids)
