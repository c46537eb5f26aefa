"""What the parts of a run share, also with the commands by which operators decide and move."""

from dataclasses import dataclass

from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake


@dataclass(frozen=True)
class Deployment:
    """A lake and the clusters of its topology file, with the one event log that all threads of a
    process write to, since it remembers what it has read."""

    lake: Lake
    connections: Connections
    event_log: EventLog

    @classmethod
    def opened(cls, lake: Lake, connections: Connections) -> "Deployment":
        """With an event log of its own."""
        return cls(lake, connections, EventLog(lake))
