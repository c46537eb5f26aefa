"""The lake's facts about one record: read by `trace.reading`, told by `trace.story`. Pure.

Rows are those of `sql/queries/trace_*.sql`; times are in UTC without a zone, as `lake.reader`'s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

FactRow = Mapping[str, Any]


class TracedRecord(NamedTuple):
    """A record of a flow, by its source offset."""

    flow: str
    topic: str
    partition: int
    offset: int

    @property
    def of_partition(self) -> dict[str, Any]:
        """Its flow and partition as query parameters."""
        return {"flow": self.flow, "topic": self.topic, "partition": self.partition}


@dataclass(frozen=True)
class FlowRun:
    """The state of the flow: `setting` is disabled or paused if an operator has set that, `mode` is
    that of its last run (continuous, once, stopped), `sampled_at` the time of its newest sample. If
    that is older than `quiet_seconds`, no process runs the flow."""

    setting: str | None = None
    mode: str | None = None
    sampled_at: datetime | None = None
    quiet_seconds: int = 60


@dataclass(frozen=True)
class Facts:
    """What is known about one record as of `now`; None or empty means unknown or absent.

    Attributes:
        record: its row in `records`. mapped: its place in the target's newest generation.
        parked: its row in `parked`: the target refused it, and the flow passed over it
            (`on_refused: park`).
        passed: the flow's progress in its partition, if the record is staged.
        batch, produced: sizes of the batches that landed it and that produced it to the target.
        at_landing, newest: samples of its partition: the last one before its landing, and the
            newest one.
        backlog: earlier staged records of its partition that were not produced when it landed.
        incidents, changes, pauses: what happened to the partition, the topic and the flow.
        readers: consumer groups with a position in the partition, on either side.
        around: the neighbouring offsets in the stage, if the record itself is not there.
    """

    place: TracedRecord
    now: datetime
    record: FactRow | None = None
    mapped: FactRow | None = None
    batch: FactRow | None = None
    produced: FactRow | None = None
    parked: FactRow | None = None
    passed: FactRow | None = None
    at_landing: FactRow | None = None
    newest: FactRow | None = None
    backlog: int | None = None
    incidents: Sequence[FactRow] = ()
    changes: Sequence[FactRow] = ()
    pauses: Sequence[FactRow] = ()
    readers: Sequence[FactRow] = ()
    around: FactRow | None = None
    flow_state: FlowRun = field(default_factory=FlowRun)

    @property
    def written_at(self) -> datetime | None:
        """The record's own timestamp."""
        return None if self.record is None else self.record["written_at"]

    @property
    def landed_at(self) -> datetime | None:
        """When it was landed."""
        return None if self.record is None else self.record["landed_at"]

    @property
    def produced_at(self) -> datetime | None:
        """When the target had acknowledged it; an upper bound if `maintain` merged rows."""
        return None if self.mapped is None else self.mapped["produced_at"]

    @property
    def is_merged(self) -> bool:
        """Whether its row of the map was merged, so that its batch is no longer known."""
        return self.mapped is not None and self.mapped["first_batch_id"] is not None
