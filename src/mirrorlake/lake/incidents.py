"""Incidents: what an operator must know, recorded once while it is open, and closed when it is over or decided."""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import NamedTuple, cast

from mirrorlake.errors import ReplicationError, first_line
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.offsets.positions import TopicAndPartition

#: How records that the stage had lost are staged again; with ` from <offset>` behind it, only from there on.
READ_AGAIN = "read-again"
#: How a flow goes on behind records that its target refuses, which stay to be sent later.
PARK = "park"
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
    else, the ranges that it goes on without since the stage has them no more, and those that are to be parked if they
    are refused."""

    stopped: frozenset[TopicAndPartition]
    skipped: dict[TopicAndPartition, tuple[tuple[int, int], ...]]
    foreign: dict[TopicAndPartition, int]
    trimmed: dict[TopicAndPartition, tuple[tuple[int, int], ...]]
    parked: dict[TopicAndPartition, tuple[tuple[int, int], ...]]


class Incidents:
    """The table `incidents` of a lake. Threads of one process share it; `resolve` writes to it from another one."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._use = threading.RLock()
        self._seen: frozenset[IncidentKey] = frozenset()  # what was open when that was last asked

    def tell(self, flow: str, kind: str, error: BaseException) -> None:
        """Record an incident; one of the same kind, topic and partition that is open is not repeated."""
        self.tell_all(flow, kind, [error])

    def tell_all(self, flow: str, kind: str, errors: Sequence[BaseException]) -> None:
        """The same of many incidents, in one commit."""
        rows = [_row(flow, kind, error) for error in errors]
        with self._use:
            known = self._open()
            fresh = [row for row in rows if _key(flow, kind, row) not in known]
            self._lake.append("incidents", rows_of("incidents", fresh))
            self._seen |= frozenset(_key(flow, kind, row) for row in fresh)

    def note(self, flow: str, kind: str, error: BaseException, resolution: str) -> None:
        """Record what is decided already."""
        row = _row(flow, kind, error)
        self._lake.append(
            "incidents", rows_of("incidents", [{**row, "resolved_at": row["at"], "resolution": resolution}])
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

    def open_counts(self) -> Mapping[str, int]:
        """How many incidents of each flow are open, as far as this process knows; the lake is not asked."""
        return Counter(flow for flow, _kind, _topic, _partition in self._seen)

    def over(self, flow: str, kind: str, still: Collection[str]) -> None:
        """Close a flow's incidents of one kind that are about topics, except those topics of which it still holds."""
        self.close(lambda name, what, topic, _partition: (name, what) == (flow, kind) and topic not in still)

    def settle(self, flow: str, kind: str, topic: str | None, partition: int | None, resolution: str) -> None:
        """Close the incidents of one kind, topic and partition. Those stopped by an operator are closed again."""
        with self._use:
            self._lake.change(
                "settle_incident", flow=flow, kind=kind, topic=topic, partition=partition, resolution=resolution
            )
            self._seen -= {(flow, kind, topic, partition)}

    def refused(self, flow: str) -> list[Refusal]:
        """Partitions that stopped at a record, or for a lost position, and that nobody decided about."""
        rows = self._lake.ask("refusals", flow=flow)
        return [Refusal(row["kind"], row["topic"], row["partition"], row["last_offset"]) for row in rows if row["open"]]

    def decided(self, flow: str) -> Decided:
        """What an operator said about partitions that stopped."""
        rows = self._lake.ask("refusals", flow=flow)
        stopped = frozenset((row["topic"], row["partition"]) for row in rows if row["resolution"] == "stop")
        skipped: dict[TopicAndPartition, tuple[tuple[int, int], ...]] = {}
        foreign: dict[TopicAndPartition, int] = {}
        trimmed: dict[TopicAndPartition, tuple[tuple[int, int], ...]] = {}
        parked: dict[TopicAndPartition, tuple[tuple[int, int], ...]] = {}
        for row in rows:
            key, offsets = (row["topic"], row["partition"]), (row["first_offset"], row["last_offset"])
            if row["resolution"] == "skip":
                skipped[key] = (*skipped.get(key, ()), offsets)
            elif row["resolution"] == PARK:
                parked[key] = (*parked.get(key, ()), offsets)
            elif row["kind"] == "stage_trimmed" and row["resolution"] in ("continue", READ_AGAIN):
                trimmed[key] = (*trimmed.get(key, ()), offsets)
            elif row["kind"] == "position_lost" and row["resolution"] == "continue":
                foreign[key] = max(foreign.get(key, -1), row["first_offset"])
        return Decided(stopped, skipped, foreign, trimmed, parked)

    def _open(self) -> set[IncidentKey]:
        rows = self._lake.ask_table("open_incidents")
        self._seen = frozenset((row["flow"], row["kind"], row["topic"], row["partition"]) for row in rows)
        return set(self._seen)


def _key(flow: str, kind: str, row: Mapping[str, object]) -> IncidentKey:
    return flow, kind, cast("str | None", row["topic"]), cast("int | None", row["partition"])


def _row(flow: str, kind: str, error: BaseException) -> dict[str, object]:
    place = error if isinstance(error, ReplicationError) else ReplicationError("about no place")
    return {
        "flow": flow,
        "at": datetime.now(timezone.utc),
        "kind": kind,
        "detail": first_line(error)[:2000],
        "topic": place.topic,
        "partition": place.partition,
        "first_offset": place.first_offset,
        "last_offset": place.last_offset,
        "target_generation": place.target_generation,
    }
