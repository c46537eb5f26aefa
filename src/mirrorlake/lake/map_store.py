"""The tables that hold what a flow produced, and by how many shards."""

from collections.abc import Sequence

import pyarrow as pa

from mirrorlake.lake.catalog_lake import CatalogLake
from mirrorlake.lake.changes import Change
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.owners import fenced
from mirrorlake.lake.reader import Frame
from mirrorlake.offsets.parked import Parked
from mirrorlake.offsets.progress import MappedEnd

#: The kind of change under which the number of a flow's shards is noted.
_SHARDS = "produce_tasks"
#: How long rows wait to be committed with those of later batches: in an object store, where a
#: commit's requests take time and cost, and in a catalog, where a commit takes Spark jobs.
ROWS_WAIT_SECONDS, SESSION_ROWS_WAIT_SECONDS = 5.0, 10.0
_PARKED = (
    "topic STRING, partition INT, generation INT, offset BIGINT, target_topic STRING, "
    "target_generation INT, reason STRING, byte_count BIGINT"
)


class LakeMap:
    """The map of one flow."""

    def __init__(self, lake: Lake, flow: str) -> None:
        self._lake = lake
        self._flow = flow
        self._application = f"mirrorlake/{lake.lake_id}/{flow}"
        self._event_log = EventLog(lake)
        #: How long rows may wait for those of later batches, to share a commit.
        self.rows_wait_seconds = ROWS_WAIT_SECONDS if lake.in_store else 0.0
        if isinstance(lake, CatalogLake):
            self.rows_wait_seconds = SESSION_ROWS_WAIT_SECONDS
        self._number = -1  # of the newest batch that was, or may have been, appended

    def take_over(self, least: int) -> int:
        """Let no append of an earlier process succeed any more: this one rebuilds rows on the way.
        Returns the number, `least` or more, after which this process's batches begin."""
        number = self._lake.take_over("latency", f"{self._application}/latency", least)
        self._number = self._lake.take_over("offset_map", f"{self._application}/map", number)
        return self._number

    def check_owner(self) -> None:
        """Raise Fenced if another process has taken over since."""
        application = f"{self._application}/map"
        known = self._lake.application_version("offset_map", application)
        if known is not None and known > self._number:
            raise fenced("offset_map", application, known, self._number)

    def produce_tasks(self) -> int | None:
        """The shards of the process that produced the flow last; None if it was not noted."""
        noted = self._event_log.history(self._flow, _SHARDS)
        return int(noted[-1].after or 0) if noted else None

    def note_produce_tasks(self, count: int) -> None:
        """Note the number of shards, before the first record is produced by so many."""
        self._event_log.record(self._flow, [Change(_SHARDS, "shards", None, str(count))])

    def ends(self) -> tuple[Sequence[MappedEnd], int]:
        """The ends of the map, and the number of the flow's newest batch (-1: none)."""
        rows = self._lake.ask("mapped_ends", flow=self._flow)
        newest = max((row["batch_id"] for row in rows), default=-1)
        names = MappedEnd.__dataclass_fields__
        return [MappedEnd(**{name: row[name] for name in names}) for row in rows], newest

    def append_map(self, rows: pa.Table, batch_id: int) -> None:
        """Append rows of `offset_map`, once for any batches up to `batch_id`. Raises Fenced."""
        # Before the append: one that fails may be in the table all the same, and is then ours.
        self._number = max(self._number, batch_id)
        self._lake.append("offset_map", rows, f"{self._application}/map", batch_id)

    def append_latency(self, rows: pa.Table, batch_id: int) -> None:
        """Append rows of `latency`, once. Raises Fenced."""
        self._lake.append("latency", rows, f"{self._application}/latency", batch_id)

    def parked(self) -> Sequence[Parked]:
        """The parked records that the flow goes on behind."""
        return [Parked(**row) for row in self._lake.ask("parked_of", flow=self._flow)]

    def park(self, rows: Sequence[Parked]) -> None:
        """Note records that the flow is about to pass, each once however often this is called."""
        self._lake.change("note_parked", {"refused": Frame.of(_PARKED, rows)}, flow=self._flow)
