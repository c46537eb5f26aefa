"""What the lake knows of one record: what `trace.reading` reads and `trace.story` tells. Pure.

Rows are those of `sql/queries/trace_*.sql`; times are in UTC without a zone, as the port
`lake.reader` gives them.
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
        """Its flow and its partition, as parameters of a query."""
        return {"flow": self.flow, "topic": self.topic, "partition": self.partition}


@dataclass(frozen=True)
class FlowRun:
    """How the flow stands now: `setting` is disabled or paused where an operator wants it so,
    `mode` that of its last run (continuous, once, stopped), `sampled_at` its newest sample; without
    one for `quiet_seconds` no process runs it."""

    setting: str | None = None
    mode: str | None = None
    sampled_at: datetime | None = None
    quiet_seconds: int = 60


@dataclass(frozen=True)
class Facts:
    """What is known of one record as of `now`; None and empty are not known, or not there.

    Attributes:
        record: its row of the stage; mapped: its place at the target, of the newest generation
            there.
        parked: that its target refused it, and the flow went on behind it (`on_refused: park`).
        passed: how far the flow has come in its partition, where the stage has the record.
        batch, produced: sizes of the landing batch, and of the batch that brought it to the target.
        at_landing, newest: samples of its partition, the last one before it was landed and the
            newest one.
        backlog: staged records of its partition in front of it that were not produced when it was
            landed.
        incidents, changes, pauses: what happened to the partition, the topic and the flow.
        readers: consumer groups with a position in the partition, on either side.
        around: what the stage has beside it, where it has not the record itself.
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
        """When the target had acknowledged it; an upper bound where `maintain` merged rows of the
        map."""
        return None if self.mapped is None else self.mapped["produced_at"]

    @property
    def is_merged(self) -> bool:
        """Whether its row of the map was merged, so that its batch is not known any more."""
        return self.mapped is not None and self.mapped["first_batch_id"] is not None
