"""The groups whose members are the processes of one topology file: their names, and the topic that
they share. Pure."""

import json
from typing import NamedTuple

TOPIC = "__mirrorlake_workers"
"""The topic that these groups read, on each cluster where one is: one partition, and no record
ever. Names that begin so are internal to MirrorMaker 2 and to every flow of ours."""
PARTITION = 0
"""Who has this partition works."""


def work_of_flow(flow: str) -> str:
    """What of a flow one process at a time does, by the name that leases and people have for it."""
    return f"flow {flow}"


def work_of_landing(alias: str) -> str:
    """The same of a cluster that is landed."""
    return f"landing of cluster {alias}"


def group_of_flow(lake_id: str, flow: str) -> str:
    """The group of the processes that may produce a flow; it is on the flow's target."""
    return f"mirrorlake-{lake_id}-{flow}->workers"


def group_of_landing(lake_id: str, alias: str) -> str:
    """The group of those that may land a cluster; it is there. No flow has a name without a
    target, so no group of a flow has its name."""
    return f"mirrorlake-{lake_id}-{alias}->->workers"


class Process(NamedTuple):
    """A process that is in a group, as it names itself there: since when, in UTC, by its own
    clock."""

    host: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def follows(self, other: "Process") -> bool:
        """Whether it is the other one, or began after it on the same host."""
        return self.host == other.host and (self.pid == other.pid or self.since > other.since)

    def text(self) -> str:
        """What is committed with the partition, and what a client is called behind `/`."""
        return json.dumps(self._asdict(), separators=(",", ":"))


def process_of(text: str) -> Process | None:
    """The process that a text of `Process.text` names; None where it names none."""
    try:
        document = json.loads(text)
        return Process(str(document["host"]), int(document["pid"]), str(document["since"]))
    except (ValueError, KeyError, TypeError):
        return None


def client_id(alias: str, process: Process) -> str:
    """What a member's client is called: brokers show it."""
    return f"mirrorlake-{alias}-workers/{process.host}/{process.pid}/{process.since}"


def process_of_client(client: str) -> Process | None:
    """The process that `client_id` named; None for another name."""
    parts = client.split("/")
    if len(parts) != 4 or not parts[2].isdecimal():
        return None
    return Process(parts[1], int(parts[2]), parts[3])
