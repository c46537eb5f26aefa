"""Incidents: what an operator must know; each is open once, and closed when over or decided."""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from mirrorlake.errors import ContentDiffers, MirrorlakeError, ReplicationError, Where, first_line
from mirrorlake.lake.decisions import Decided, decided_of
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.other_logs import OtherLogs, noted_logs, other_logs
from mirrorlake.lake.reader import Frame, QueryRows
from mirrorlake.lake.rising_times import next_time
from mirrorlake.lake.targets import LivingMirror
from mirrorlake.offsets.positions import PartitionGeneration

#: The resolutions of incidents that end by themselves, also in `sql/queries/remove_incidents.sql`.
CAME_THROUGH, WENT_ON = "it came through again", "the flow went on behind the records"
_SETTLED = (
    "flow STRING, kind STRING, topic STRING, partition INT, generation INT, of_mirror BOOLEAN, "
    "target_topic STRING, target_generation INT, behind TIMESTAMP"
)
#: Kinds whose incidents concern only the offsets that they name, and await no decision: an open one
#: does not cover other offsets of its partition.
_OF_OFFSETS = frozenset({"landing_gap"})


class NotedMirror(NamedTuple):
    """The target topic and its generation that the row of an incident names; None where it names
    none, as rows about no target topic and those of earlier versions."""

    target_topic: str | None
    target_generation: int | None


class IncidentKey(NamedTuple):
    """What an incident is about; an open one is not reported twice. `generation` is the source
    topic's, 0 where the incident concerns none. Without a `mirror` it is of any mirror that the
    flow had under its policies and in generations of target topics."""

    flow: str
    kind: str
    topic: str | None = None
    partition: int | None = None
    generation: int = 0
    mirror: NotedMirror | None = None


class Incident(NamedTuple):
    """What is wrong with a flow: its kind, and the error, whose attributes name the place."""

    flow: str
    kind: str
    error: MirrorlakeError

    @property
    def key(self) -> IncidentKey:
        """The key of its row."""
        return key_of(_row(self))


class WaitingPartition(NamedTuple):
    """A partition that waits for a decision, with the last source offset of its incident, and the
    target topic and generation that this is about, as `LivingMirror.is_of` compares them."""

    key: IncidentKey
    place: PartitionGeneration
    last_offset: int
    about: NotedMirror


class Incidents:
    """The table `incidents`. Threads share it; `resolve` writes to it from another process."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._use = threading.RLock()
        #: What was open when last read, and the first offset of each.
        self._seen: Mapping[IncidentKey, int | None] = {}
        self._asked = False  # whether the lake was ever read
        #: By source: the logs that waited when the lake was last asked, and its answer.
        self._other_logs: dict[str, tuple[OtherLogs, OtherLogs]] = {}

    def open(self, flow: str, kind: str, error: MirrorlakeError) -> None:
        """Record an incident, unless one of the same kind, topic, partition and generations (source
        and target) is open. Kinds that concern only offsets are recorded for others too."""
        self.report([Incident(flow, kind, error)])

    def open_all(self, flow: str, kind: str, errors: Iterable[MirrorlakeError]) -> None:
        """Record incidents of one kind for many errors, in one commit."""
        self.report([Incident(flow, kind, error) for error in errors])

    def report(self, incidents: Iterable[Incident]) -> None:
        """Record incidents in one commit: a topic may have thousands, and the caller waits."""
        rows = [*map(_row, incidents)]
        if not rows:
            return
        with self._use:
            open_rows = self._open_rows()
            # an earlier version that altered a catalog's view left the column out
            named = "target_topic" in open_rows.columns
            known = {_dedup_key(row, named) for row in open_rows}
            by_key: dict[tuple[object, ...], dict[str, object]] = {}
            for row in rows:
                by_key.setdefault(_dedup_key(row, named), row)
            fresh = [row for row_key, row in by_key.items() if row_key not in known]
            if fresh:
                # as of the same reading as the open ones
                now = next_time(self._lake.reader, "newest_incident")
                rows_now = [row | {"at": now} for row in fresh]
                self._lake.append("incidents", rows_of("incidents", rows_now))
            self._seen = {**self._seen, **_first_offsets(fresh)}

    def note(self, incidents: Iterable[Incident], resolution: str) -> None:
        """Record incidents that are already decided, in one commit."""
        rows = [*map(_row, incidents)]
        if rows:
            now = next_time(self._lake.now, "newest_incident")
            decided = {"at": now, "resolved_at": now, "resolution": resolution}
            decided_rows = [row | decided for row in rows]
            self._lake.append("incidents", rows_of("incidents", decided_rows))

    def close(self, over: Callable[[IncidentKey], bool]) -> None:
        """Close incidents that ended by themselves, in one commit: open ones that are `over`."""
        with self._use:
            self.settle_all((key for key in self._open_keys() if over(key)), CAME_THROUGH)

    def close_kinds(self, flows: Iterable[str], kinds: Iterable[str]) -> None:
        """Close the open incidents of these flows and kinds: what was wrong went away by itself."""
        wanted, named = set(kinds), set(flows)
        self.close(lambda key: key.flow in named and key.kind in wanted)

    def open_kinds(self, flow: str) -> set[str]:
        """The kinds of a flow's open incidents."""
        return {key.kind for key in self._open_keys() if key.flow == flow}

    def other_logs(self, flow: str) -> OtherLogs:
        """What waits for a decision, or was stopped by one, about the logs at the source of a flow.
        As of this process's last reading of incidents; if it never read them, it does so now."""
        if not self._asked:
            self._open_rows()
        alias = flow.partition("->")[0]
        waiting = noted_logs(
            alias,
            (
                {**key._asdict(), "first_offset": first}
                for key, first in self._seen.items()
                if key.flow.partition("->")[0] == alias
            ),
        )
        before, known = self._other_logs.get(alias, (None, waiting))
        if before != waiting:  # at the start, and when something was decided
            known = other_logs(self._lake.now, flow)
            self._other_logs[alias] = waiting, known
        return waiting.joined(known)

    def open_counts(self) -> Mapping[str, int]:
        """How many incidents each flow has open, as far as this process knows: reads no lake."""
        return Counter(key.flow for key in self._seen)

    def open_kind_counts(self) -> Mapping[tuple[str, str], int]:
        """As `open_counts`, by flow and kind."""
        return Counter((key.flow, key.kind) for key in self._seen)

    def close_except(self, flow: str, kind: str, still: Collection[str]) -> None:
        """Close a flow's open incidents of one kind, except those about topics in `still`."""
        self.close(lambda key: key[:2] == (flow, kind) and key.topic not in still)

    def settle_all(self, keys: Iterable[IncidentKey], resolution: str) -> None:
        """Close incidents, in one commit, which rewrites the table. Incidents that an operator
        resolved by `stop` are closed too. The keys have mirrors, all of them or none."""
        settled = frozenset(keys)
        if not settled:
            return
        with self._use:
            behind = None
            if any(key.kind == "target_lost" for key in settled):
                # by it the view `group_positions` knows earlier checkpoints
                behind = self._lake.ask("newest_checkpoint")[0]["at"]
            none = NotedMirror(None, None)
            rows = [
                (*key[:-1], key.mirror is not None, *(key.mirror or none), behind)
                for key in settled
            ]
            frames = {"settled": Frame(_SETTLED, rows)}
            self._lake.change("settle_incidents", frames, resolution=resolution)
            self._seen = {
                key: at
                for key, at in self._seen.items()
                if not {key, key._replace(mirror=None)} & settled
            }

    def refused(self, flow: str) -> list[WaitingPartition]:
        """Partitions that stopped at a record, or for a lost position, without a decision yet."""
        rows = self._lake.ask("mirror_incidents", flow=flow)
        waiting = []
        for row in rows:
            if row["open"] and row["kind"] != ContentDiffers.incident_kind:
                place = PartitionGeneration.from_row(row)
                mirror = NotedMirror(row["noted_topic"], row["target_generation"])
                key = IncidentKey(flow, row["kind"], *place, mirror)
                about = mirror._replace(target_topic=row["target_topic"])
                waiting.append(WaitingPartition(key, place, row["last_offset"], about))
        return waiting

    def decided(self, flow: str, mirror: Callable[[str], LivingMirror]) -> Decided:
        """The operator's decisions about stopped partitions that hold now; see `decided_of`."""
        return decided_of(self._lake.ask("mirror_incidents", flow=flow), mirror)

    def _open_keys(self) -> set[IncidentKey]:
        self._open_rows()
        return set(self._seen)

    def _open_rows(self) -> QueryRows:
        rows = self._lake.ask_table("open_incidents")
        self._asked = True
        self._seen = _first_offsets(rows)
        return rows


def key_of(row: Mapping[str, Any]) -> IncidentKey:
    """The key, by its row; of any mirror where an earlier version's view does not name it."""
    mirror = None
    if "target_topic" in row:
        mirror = NotedMirror(row["target_topic"], row.get("target_generation"))
    place = (row["topic"], row["partition"], row["generation"] or 0)
    return IncidentKey(row["flow"], row["kind"], *place, mirror)


def _first_offsets(rows: Iterable[Mapping[str, Any]]) -> dict[IncidentKey, int | None]:
    return {key_of(row): row["first_offset"] for row in rows}


def _dedup_key(row: Mapping[str, Any], named: bool) -> tuple[object, ...]:
    """What makes an incident's row distinct, so that it is not recorded twice. An incident about a
    target topic that is gone differs from one about the topic that now has its name, and, where
    rows have names (`named`), from one about another name."""
    # an earlier version's view lacks this column, too
    key, of_target = key_of(row)._replace(mirror=None), row.get("target_generation") or 0
    row_key = *key, of_target, row["target_topic"] if named else None
    return (
        (*row_key, row["first_offset"], row["last_offset"]) if key.kind in _OF_OFFSETS else row_key
    )


def _row(incident: Incident) -> dict[str, object]:
    flow, kind, error = incident
    place = error if isinstance(error, ReplicationError) else ReplicationError("about no place")
    return {
        "flow": flow,
        "kind": kind,
        "detail": first_line(error)[:2000],
        **{name: getattr(place, name) for name in ("topic", *Where.__annotations__)},
    }
