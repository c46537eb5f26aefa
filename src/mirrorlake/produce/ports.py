"""The stage to plan from: a flow's (`lake/stage_index.py`) or a resend's (`resend/sender.py`)."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from mirrorlake.offsets.stage_index import StageIndex

#: Where a batch was produced: by the driver itself (`short`), or by Spark's workers (`long`).
BatchWay = Literal["short", "long"]


class Stage(Protocol):
    """The stage, as the driver plans from it. `storage` has options for opening its files
    (`lake.place.Place.options`); reading the files is reading the table while it `is_its_files`."""

    @property
    def storage(self) -> Mapping[str, str] | None: ...

    @property
    def is_its_files(self) -> bool: ...

    def reading(self) -> AbstractContextManager[StageIndex]:
        """The index as of the newest commit; nothing else changes it during the block."""

    def forget(self) -> None:
        """Rebuild the index from the table: files that it names are gone."""

    def invalidate(self) -> None:
        """Rebuild the index, unless it follows each commit: another number of records was read."""
