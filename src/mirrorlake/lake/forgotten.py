"""What was deleted from the stage by predicate: the table `forgotten`, which names offsets only."""

import json
import logging
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

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


def resends_from(
    lake: Lake, source_cluster: str, topics: Collection[str] | None = None
) -> list[str]:
    """The replays and restores of a cluster's landed records that have begun and not ended, of some
    topics (None: all)."""
    begun = (row for kind in ("replay", "restore") for row in lake.ask("resends", kind=kind))
    names = (
        row["flow"]
        for row in begun
        if row["flow"].partition("->")[0].rpartition(":")[2] == source_cluster
        and (topics is None or _topic_of(row["after"]) in (*topics, None))
    )
    return list(dict.fromkeys(names))


def _topic_of(note: str | None) -> str | None:
    """The source topic of what a resend noted when it began; None if it cannot be read."""
    with suppress(ValueError, TypeError, KeyError):
        return str(json.loads(note or "")["topic"])
    return None


@dataclass
class NotedCall:
    """What one call of `forget` noted, and is not known to be deleted: rows of `forget_pending`,
    and the replays and restores that may need it."""

    forget_id: str
    rows: list[Mapping[str, Any]]
    going: list[str]

    @property
    def records(self) -> int:
        """How many records it noted."""
        return sum(row["record_count"] for row in self.rows)


def noted_calls(lake: Lake) -> list[NotedCall]:
    """The calls of which something is not known to be deleted. The topics of one go together, since
    its end is noted for all of them."""
    calls: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in lake.ask("forget_pending"):
        calls[row["forget_id"], row["source_cluster"]].append(row)
    return [
        NotedCall(number, rows, resends_from(lake, source, {row["topic"] for row in rows}))
        for (number, source), rows in sorted(calls.items())
    ]


def finish(lake: Lake, forget_id: str = "", considered: Collection[str] = ()) -> int:
    """Delete what was noted, also by killed calls; returns how many records that were. The caller
    must hold `forgetting`.

    Replays and restores note that they begin, and then look at what to leave out. One that began
    before the note may not leave it out, so the records of its topics stay until it has ended,
    except for what the call `forget_id` noted where it is `considered` there.
    """
    left = []
    for call in noted_calls(lake):
        known = considered if call.forget_id == forget_id else ()
        going = [name for name in call.going if name not in known]
        if going:
            logger.info("what %s noted stays until %s has ended", call.forget_id, going[0])
        else:
            left.append(call)
    for call in left:
        for row in call.rows:
            names = ("forget_id", "source_cluster", "topic", "first", "last")
            where = {name: row[name] for name in names}
            lake.upkeep("records").rewrite("forget_records", **where)
    if left:
        failpoints.reached("forget-deleted")
    for call in left:
        lake.change("forget_done", forget_id=call.forget_id)
        gone = ", ".join(f"{row['record_count']} records of {row['topic']}" for row in call.rows)
        # Not even a hash of the predicate: one of a short key is soon guessed.
        noted = Change("forget", "records", None, f"{call.forget_id}: {gone}")
        EventLog(lake).record(WHOLE_LAKE, [noted])
    return sum(call.records for call in left)
