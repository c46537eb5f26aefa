"""Objectives: the thresholds behind `alerts`, set once in the topology file for every reader of the
lake.

The replicator and `maintain` copy them into the table `objectives` (`lake/objectives.py`), so that
the view `alerts`, `mirrorlake status` and a workspace's alerts use the same numbers.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from mirrorlake.config.fields import Model

Threshold = Annotated[int, Field(ge=1, le=7 * 86400)]
#: At most 12 hours: `alerts` reads the samples of 13, to see that a partition stood still.
StandStill = Annotated[int, Field(ge=10, le=12 * 3600)]


class FlowObjectives(Model):
    """Objectives of one flow that differ; null means the common value."""

    lag_seconds: Threshold | None = None
    latency_p99_ms: Annotated[int, Field(ge=1)] | None = None
    heartbeat_seconds: Threshold | None = None
    stuck_seconds: StandStill | None = None
    transaction_seconds: Threshold | None = None


class Objectives(Model):
    """The objectives of all flows; `flows` has those of single flows that differ."""

    lag_seconds: Threshold = 60
    latency_p99_ms: int = Field(default=5000, ge=1)
    heartbeat_seconds: Threshold = 60
    stuck_seconds: StandStill = 600
    #: The default of brokers' `transaction.max.timeout.ms`: one open for longer is hanging.
    transaction_seconds: Threshold = 900
    flows: dict[str, FlowObjectives] = {}

    def for_flow(self, flow: str) -> dict[str, int]:
        """The thresholds of a flow, by name."""
        own = self.flows.get(flow, FlowObjectives())
        common = {name: getattr(self, name) for name in FlowObjectives.model_fields}
        return {name: getattr(own, name) or value for name, value in common.items()}


def paused_pattern(paused: bool | Sequence[str]) -> str | None:
    """A flow's `paused` as a Java regex of whole topic names; None if nothing is paused."""
    if isinstance(paused, bool):
        return ".*" if paused else None
    return f"^(?:{'|'.join(f'(?:{pattern})' for pattern in paused)})$" if paused else None
