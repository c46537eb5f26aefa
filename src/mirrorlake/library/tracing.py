"""One record's life as an answer of the library: the result of `OpenFlow.trace`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.durations import duration
from mirrorlake.errors import InputError
from mirrorlake.library.answers import Answer, Rows
from mirrorlake.library.internals import Internals
from mirrorlake.trace.facts import FlowRun, TracedRecord
from mirrorlake.trace.reading import (
    ANY_GENERATION,
    flow_state_of,
    newest_with_key,
    origin,
    read_facts,
)
from mirrorlake.trace.story import tell


@dataclass(frozen=True)
class Trace(Answer):
    """One record's life, from written to read. Times are in UTC, without a time zone.

        print(*lake.flows["east->west"].trace("orders", 0, 42).lines(), sep="\\n")

    Attributes:
        flow, topic, partition, offset: the record, by its source offset.
        generation: that of its topic; None if the record is not in the stage.
        state: at_target, target_gone, echo, given_up, refused, blocked, stopped, paused, disabled,
            not_running, waiting, parked, passed_over, replayed, removed, forgotten, lost,
            beyond_end, before_start, no_record or unknown (docs/trace.md).
        needs_somebody: the record goes no further until an operator acts.
        sentence: the state in words, with what to do.
        target_topic, target_partition, target_offset: its place at the target; None if it has none.
        latency_ms: `landing` (timestamp to stage), `producing` (stage to the target's
            acknowledgement), `replication`.
        stages: `stage` (written, landed, produced, read), `at`, `after_ms` and the sentence `said`,
            in this order.
        held_up: `what` held it up, `since`, `until` (None: still), and the sentence `said`.
        readers: the positions of groups on both sides, and whether each `is_past` the record.
        incidents, changes: those of the partition, topic and flow while the record was on its way.
    """

    flow: str
    topic: str
    partition: int
    offset: int
    generation: int | None
    state: str
    needs_somebody: bool
    sentence: str
    target_topic: str | None
    target_partition: int | None
    target_offset: int | None
    latency_ms: dict[str, int | None]
    stages: Rows
    held_up: Rows
    readers: Rows
    incidents: Rows
    changes: Rows

    def lines(self) -> Iterator[str]:
        """The lines of the story, for a person."""
        yield f"{self.topic}-{self.partition} offset {self.offset}, {self.flow}: {self.sentence}"
        for row in self.stages:
            after = "" if row["after_ms"] is None else duration(row["after_ms"])
            yield (
                f"  {_clock(row['at'])}  "
                f"{'+' + after if after and after[0] != '-' else after:>14}  {row['said']}"
            )
        if self.latency_ms["replication"] is not None:
            yield (
                f"  {duration(self.latency_ms['replication'])} from its timestamp to the "
                "target's acknowledgement"
            )
        for row in self.held_up:
            until = f" to {_clock(row['until']) if row['until'] else 'now'}"
            until = "" if row["until"] == row["since"] else until
            how = "meanwhile" if row["what"] == "change" else f"held up by {row['what']}"
            yield f"  {how}, {_clock(row['since'])}{until}: {row['said']}"
        if not self.held_up and self.stages:
            yield "  nothing that the lake knows of held it up"
        behind = ", ".join(
            f"{row['group_id']} ({row['side']})" for row in self.readers if not row["is_past"]
        )
        if behind:
            yield f"  not yet read past by: {behind}"

    @property
    def headline(self) -> tuple[str, bool]:
        place = f"{self.topic}-{self.partition} offset {self.offset}"
        return f"{place}: {self.sentence}", not self.needs_somebody


def traced(
    known: Internals,
    flow: str,
    topic: str,
    partition: int | None,
    offset: int | None,
    *,
    key: str | None,
    since: datetime | None,
    reverse: bool,
) -> Trace:
    """Trace a record. Raises as documented for `OpenFlow.trace`."""
    lake, generation = known.reader, ANY_GENERATION
    if (partition or 0) < 0 or (offset or 0) < 0:
        raise InputError("partition and offset count from 0; give those of the record")
    with known.or_absent():
        if key is None and partition is not None and offset is not None:
            place = TracedRecord(flow, topic, partition, offset)
            if reverse:
                place, generation = origin(lake, *place)
        elif key is not None and partition is None and offset is None and not reverse:
            place, generation = newest_with_key(lake, flow, topic, key, since)
        else:
            raise InputError(
                "give a record by its partition and offset, or by its key and the source's topic"
            )
        now = datetime.now(timezone.utc).replace(tzinfo=None)
        facts = read_facts(lake, place, _flow_state(known, place), now, generation)
        return Trace.from_document(tell(facts))


def _flow_state(known: Internals, place: TracedRecord) -> FlowRun:
    """The state of the flow, with its setting in the current topology file, if there is one."""
    state = flow_state_of(known.reader, place.flow, place.topic)
    if not known.has_topology:
        return state
    return replace(state, setting=_setting(known.topology.flow(place.flow), place.topic))


def _setting(flow: ResolvedFlow, topic: str) -> str | None:
    if not flow.settings.enabled:
        return "disabled"
    return "paused" if flow.pauses(topic) else None


def _clock(at: Any) -> str:
    return "no time" if at is None else f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}"
