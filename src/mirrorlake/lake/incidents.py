"""Incidents: what an operator must know, told once while it is open, and closed when it is over or decided."""

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timezone
from typing import NamedTuple

import pyarrow as pa

from mirrorlake.errors import ReplicationError
from mirrorlake.lake.lake import Lake, arrow_table
from mirrorlake.offsets.positions import TopicAndPartition

_TIME = pa.timestamp("us", tz="UTC")
_INCIDENTS = pa.schema(
    [
        ("flow", pa.string()),
        ("at", _TIME),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("detail", pa.string()),
        ("resolved_at", _TIME),
        ("resolution", pa.string()),
        ("target_generation", pa.int32()),
    ]
)
#: How records that the stage had lost are staged again; with ` from <offset>` behind it, only from there on.
READ_AGAIN = "read-again"
IncidentKey = tuple[str, str, str | None, int | None]


class Refusal(NamedTuple):
    """A partition that waits for a decision, with the last source offset that the incident names."""

    kind: str
    topic: str
    partition: int
    last_offset: int


class Decided(NamedTuple):
    """What an operator said about partitions that stopped: `stopped` ones, by partition the ranges of source offsets
    (first and last) that were given up, and the source offset at which the flow goes on behind records of somebody
    else, and the ranges that it goes on without since the stage has them no more."""

    stopped: frozenset[TopicAndPartition]
    skipped: dict[TopicAndPartition, tuple[tuple[int, int], ...]]
    foreign: dict[TopicAndPartition, int]
    trimmed: dict[TopicAndPartition, tuple[tuple[int, int], ...]]


class Incidents:
    """The table `incidents` of a lake. Threads of one process share it; `resolve` writes to it from another one."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._use = threading.RLock()

    def tell(self, flow: str, kind: str, error: BaseException) -> None:
        """Record an incident; one of the same kind, topic and partition that is open is not repeated."""
        self.tell_all(flow, kind, [error])

    def tell_all(self, flow: str, kind: str, errors: Sequence[BaseException]) -> None:
        """The same of many incidents, in one commit."""
        rows = [_row(flow, kind, error) for error in errors]
        with self._use:
            known = self._open()
            fresh = [row for row in rows if (flow, kind, row["topic"], row["partition"]) not in known]
            self._lake.append("incidents", arrow_table(fresh, _INCIDENTS))

    def note(self, flow: str, kind: str, error: BaseException, resolution: str) -> None:
        """Record what is decided already."""
        row = _row(flow, kind, error)
        self._lake.append(
            "incidents", arrow_table([{**row, "resolved_at": row["at"], "resolution": resolution}], _INCIDENTS)
        )

    def close(self, over: Callable[[str, str, str | None, int | None], bool]) -> None:
        """Close what went away by itself: `over` is asked with flow, kind, topic and partition of what is open."""
        with self._use:
            for incident in self._open():
                if over(*incident):
                    self.settle(*incident, "it came through again")

    def came_through(self, flows: Iterable[str], kinds: Iterable[str]) -> None:
        """Close what is over: what was wrong with these flows went away by itself."""
        wanted, named = set(kinds), set(flows)
        self.close(lambda flow, kind, _topic, _partition: flow in named and kind in wanted)

    def open_kinds(self, flow: str) -> set[str]:
        """The kinds of a flow's open incidents."""
        return {kind for name, kind, _topic, _partition in self._open() if name == flow}

    def over(self, flow: str, kind: str, still: Collection[str]) -> None:
        """Close a flow's incidents of one kind that are about topics, but for the topics of which it still holds."""
        self.close(lambda name, what, topic, _partition: (name, what) == (flow, kind) and topic not in still)

    def settle(self, flow: str, kind: str, topic: str | None, partition: int | None, resolution: str) -> None:
        """Close the incidents of one kind, topic and partition. Those stopped by an operator are closed anew."""
        with self._use:
            self._lake.change(
                "settle_incident", flow=flow, kind=kind, topic=topic, partition=partition, resolution=resolution
            )

    def refused(self, flow: str) -> list[Refusal]:
        """Partitions that stopped at a record, or for a lost position, and that nobody decided about."""
        rows = self._lake.query("refusals", flow=flow).collect()
        return [Refusal(row["kind"], row["topic"], row["partition"], row["last_offset"]) for row in rows if row["open"]]

    def decided(self, flow: str) -> Decided:
        """What an operator said about partitions that stopped."""
        rows = self._lake.query("refusals", flow=flow).collect()
        stopped = frozenset((row["topic"], row["partition"]) for row in rows if row["resolution"] == "stop")
        skipped: dict[TopicAndPartition, tuple[tuple[int, int], ...]] = {}
        foreign: dict[TopicAndPartition, int] = {}
        trimmed: dict[TopicAndPartition, tuple[tuple[int, int], ...]] = {}
        for row in rows:
            key, offsets = (row["topic"], row["partition"]), (row["first_offset"], row["last_offset"])
            if row["resolution"] == "skip":
                skipped[key] = (*skipped.get(key, ()), offsets)
            elif row["kind"] == "stage_trimmed" and row["resolution"] in ("continue", READ_AGAIN):
                trimmed[key] = (*trimmed.get(key, ()), offsets)
            elif row["kind"] == "position_lost" and row["resolution"] == "continue":
                foreign[key] = max(foreign.get(key, -1), row["first_offset"])
        return Decided(stopped, skipped, foreign, trimmed)

    def _open(self) -> set[IncidentKey]:
        rows = self._lake.table("open_incidents").select("flow", "kind", "topic", "partition").collect()
        return {(row["flow"], row["kind"], row["topic"], row["partition"]) for row in rows}


def _row(flow: str, kind: str, error: BaseException) -> dict[str, object]:
    place = error if isinstance(error, ReplicationError) else ReplicationError("about no place")
    return {
        "flow": flow,
        "at": datetime.now(timezone.utc),
        "kind": kind,
        "detail": str(error).strip().splitlines()[0][:2000],
        "topic": place.topic,
        "partition": place.partition,
        "first_offset": place.first_offset,
        "last_offset": place.last_offset,
        "target_generation": place.target_generation,
    }
