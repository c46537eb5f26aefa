"""What the parts of a run share."""

from dataclasses import dataclass

from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake


@dataclass(frozen=True)
class Deployment:
    """A lake and the clusters of its topology file, with the log of events that all threads of a
    run write to: one, since it remembers what it has read."""

    lake: Lake
    connections: Connections
    event_log: EventLog
