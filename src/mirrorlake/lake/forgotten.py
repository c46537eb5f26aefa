"""What was deleted from the stage by predicate: the table `forgotten`, which names offsets only."""

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping

import pyarrow as pa

from mirrorlake import failpoints
from mirrorlake.errors import LeaseTaken
from mirrorlake.lake.changes import WHOLE_LAKE, Change
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import Lease
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.offsets.ranges import OffsetRanges, are_in

logger = logging.getLogger(__name__)


def forgotten_from(lake: Lake, source_cluster: str) -> Mapping[PartitionGeneration, OffsetRanges]:
    """Source offsets (inclusive) of a cluster's landed records that were, or will be, deleted."""
    ranges_by_place: dict[PartitionGeneration, list[tuple[int, int]]] = defaultdict(list)
    for row in lake.ask("forgotten_of", source_cluster=source_cluster):
        ranges_by_place[PartitionGeneration.from_row(row)].append(
            (row["first_offset"], row["last_offset"])
        )
    return {place: OffsetRanges(ranges) for place, ranges in ranges_by_place.items()}


def forgotten_ends(lake: Lake, source_cluster: str) -> Mapping[PartitionGeneration, int]:
    """The offsets behind the last deleted records."""
    rows = lake.ask("forgotten_ends", source_cluster=source_cluster)
    return {PartitionGeneration.from_row(row): row["position"] for row in rows}


def without_forgotten(rows: pa.RecordBatch, ranges: OffsetRanges) -> pa.RecordBatch:
    """Rows of `records` without those whose offsets lie in ranges."""
    offsets = rows.column("offset").to_numpy(zero_copy_only=False)
    return rows.filter(pa.array(~are_in(list(ranges), offsets)))


def forgetting(lake: Lake) -> Lease:
    """The lease to note what is deleted, and to delete it: a process that finishes while another
    one notes would take what is noted later for deleted."""
    return Lease(lake, "forgetting records")


def finish_calls(lake: Lake) -> int:
    """Delete what killed calls of `forget` noted, not running ones; returns how many records."""
    try:
        with forgetting(lake):
            return finish(lake)
    except LeaseTaken as taken:
        logger.info("%s; what it noted is not deleted here", taken)
        return 0


def resends_from(lake: Lake, source_cluster: str) -> list[str]:
    """The replays and restores of a cluster's landed records that have begun and not ended."""
    begun = (row["flow"] for row in lake.ask("resends_begun"))
    return [name for name in begun if name.partition("->")[0].rpartition(":")[2] == source_cluster]


def finish(lake: Lake, forget_id: str = "", considered: Collection[str] = ()) -> int:
    """Delete what was noted, also by killed calls; returns how many records that were. The caller
    must hold `forgetting`.

    Replays and restores note that they begin, and then look at what to leave out. One that began
    before the note may not leave it out, so the records stay until it has ended, except for what
    the call `forget_id` noted where it is `considered` there.
    """
    left, pending = [], lake.ask("forget_pending")
    # asked once: the end of a call is noted for all of its topics
    resends = {
        name: resends_from(lake, name) for name in {row["source_cluster"] for row in pending}
    }
    for row in pending:
        known = considered if row["forget_id"] == forget_id else ()
        going = [name for name in resends[row["source_cluster"]] if name not in known]
        if going:
            logger.info("what %s noted stays until %s has ended", row["forget_id"], going[0])
        else:
            left.append(row)
    for row in left:
        where = {
            name: row[name] for name in ("forget_id", "source_cluster", "topic", "first", "last")
        }
        lake.upkeep("records").rewrite("forget_records", **where)
    if left:
        failpoints.reached("forget-deleted")
    for forget_id in sorted({row["forget_id"] for row in left}):
        lake.change("forget_done", forget_id=forget_id)
        gone = (
            f"{row['record_count']} records of {row['topic']}"
            for row in left
            if row["forget_id"] == forget_id
        )
        # Not even a hash of the predicate: one of a short key is soon guessed.
        EventLog(lake).record(
            WHOLE_LAKE, [Change("forget", "records", None, f"{forget_id}: {', '.join(gone)}")]
        )
    return sum(row["record_count"] for row in left)
