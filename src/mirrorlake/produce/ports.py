"""The ports of producing a flow: the stage, the tables of the map, and workers.

Spark, Delta and their files are behind them (`lake/stage_index.py`, `lake/map_store.py`,
`produce/workers.py`); the simulation in tests/simulation puts memory there.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

import pyarrow as pa

from mirrorlake.offsets.parked import Parked
from mirrorlake.offsets.progress import MappedEnd
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.counted import Stretch
from mirrorlake.produce.report import Reports
from mirrorlake.produce.task import ShardJob

#: Where a batch was produced: by the driver itself (`short`), or by Spark's workers (`long`).
BatchWay = Literal["short", "long"]


class Stage(Protocol):
    """The stage, as the driver plans from it. `storage` has the options for opening its files, see
    `lake.place.Place.options`; reading the files is reading the table as long as it
    `is_its_files`."""

    @property
    def storage(self) -> Mapping[str, str] | None: ...

    @property
    def is_its_files(self) -> bool: ...

    def reading(self) -> AbstractContextManager[StageIndex]:
        """The index as of the newest commit, for the time of the block: nothing else changes it
        meanwhile."""

    def forget(self) -> None:
        """Rebuild the index from the table: files that it names are gone."""

    def invalidate(self) -> None:
        """Rebuild the index, unless it follows each commit exactly: the number of records read
        differed from the index."""


class MapStore(Protocol):
    """The tables that hold what a flow produced. Rows may wait `rows_wait_seconds` for those of
    later batches, to share a commit."""

    rows_wait_seconds: float

    def take_over(self, least: int) -> int:
        """Make sure that no append of an earlier process succeeds any more: rows on its way to the
        map are rebuilt by this one. Returns the number, `least` or more, after which this process's
        batches begin."""

    def check_owner(self) -> None:
        """Raise Fenced if another process has taken over since."""

    def produce_tasks(self) -> int | None:
        """The number of shards of the process that produced the flow last; None if it was not
        noted."""

    def note_produce_tasks(self, count: int) -> None:
        """Note the number of shards, before the first record is produced by so many."""

    def ends(self) -> tuple[Sequence[MappedEnd], int]:
        """The ends of the flow's map, and the number of its newest batch (-1: none)."""

    def append_map(self, rows: pa.Table, batch_id: int) -> None:
        """Append rows of `offset_map`, once, however often it is called for batches up to
        `batch_id`. Raises Fenced."""

    def append_latency(self, rows: pa.Table, batch_id: int) -> None:
        """Append rows of `latency`, once. Raises Fenced."""

    def parked(self) -> Sequence[Parked]:
        """The records that the flow has parked."""

    def park(self, rows: Sequence[Parked]) -> None:
        """Note records to be parked, each once, however often it is called."""


class Workers(Protocol):
    """Where the shards of a batch are written; returns rows of `report.RESULT` and the failure of
    tasks. Raises other failures: a lost worker, with all that the tasks of its batch returned."""

    def at_most(self, records: int) -> int:
        """How many records the next batch may have, given the limit of the flow's settings."""

    def can_read_files(self) -> bool:
        """Whether workers may open the stage's files themselves."""

    def files(self, jobs: Sequence[ShardJob]) -> tuple[BatchWay, Reports]:
        """Run jobs whose files hold all offsets in order; returns where they ran, and the
        results."""

    def close(self) -> None:
        """Drop the producers that this process has."""

    def count(self, stretches: Sequence[Stretch]) -> Sequence[int]:
        """How many records the stage has of some offsets of the flow's source cluster."""

    def rows(
        self, jobs: Sequence[ShardJob], plans: Sequence[PartitionPlan], produce_tasks: int
    ) -> tuple[BatchWay, Reports]:
        """Run jobs over sorted rows that Spark reads; returns where they ran, and the results."""
