"""The groups of the processes of one topology file: their names, and their topic. Pure."""

import json
from typing import NamedTuple

TOPIC = "__mirrorlake_workers"
"""The topic that these groups read, on each cluster where one is: one partition, and no record
ever. Names that begin so are internal to MirrorMaker 2 and to every flow of ours."""
PARTITION = 0
"""Who has this partition works."""


def work_of_flow(flow: str) -> str:
    """The name, in leases and messages, of a flow's work that one process at a time does."""
    return f"flow {flow}"


def work_of_landing(alias: str) -> str:
    """The same for landing a cluster."""
    return f"landing of cluster {alias}"


def group_of_flow(lake_id: str, flow: str) -> str:
    """The group of the processes that may produce a flow, on the flow's target."""
    return f"mirrorlake-{lake_id}-{flow}->workers"


def group_of_landing(lake_id: str, alias: str) -> str:
    """The group of the processes that may land a cluster, on that cluster. It differs from every
    flow's group, since no flow's name lacks a target."""
    return f"mirrorlake-{lake_id}-{alias}->->workers"


class Process(NamedTuple):
    """A process in a group, as it identifies itself there; `since` is in UTC, by its own clock."""

    host: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def follows(self, other: "Process") -> bool:
        """Whether this is the other process, or one that began after it on the same host."""
        return self.host == other.host and (self.pid == other.pid or self.since > other.since)

    def text(self) -> str:
        """The text that is committed with the partition."""
        return json.dumps(self._asdict(), separators=(",", ":"))


def process_of(text: str) -> Process | None:
    """The process in a text of `Process.text`; None if it is not one."""
    try:
        document = json.loads(text)
        return Process(str(document["host"]), int(document["pid"]), str(document["since"]))
    except (ValueError, KeyError, TypeError):
        return None


def client_id(alias: str, process: Process) -> str:
    """The client id of a member, which brokers show."""
    return f"mirrorlake-{alias}-workers/{process.host}/{process.pid}/{process.since}"


def process_of_client(client: str) -> Process | None:
    """The process in a `client_id`; None for any other name."""
    parts = client.split("/")
    if len(parts) != 4 or not parts[2].isdecimal():
        return None
    return Process(parts[1], int(parts[2]), parts[3])
