"""Which process does what, and which stand by, as the groups on the clusters say (`status`)."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import MirrorlakeError
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.groups import GroupMembers, GroupPositions
from mirrorlake.naming.worker_groups import (
    PARTITION,
    TOPIC,
    group_of_flow,
    group_of_landing,
    process_of,
    process_of_client,
)

#: How long clusters are waited for, all together, seconds.
ANSWER_SECONDS = 6.0
WORKS, STANDS_BY = "works", "stands by"


class Work(NamedTuple):
    """What one process at a time does, and the group of those that may, on `cluster`. Landing is of
    no flow."""

    text: str
    flow: str | None
    cluster: str
    group: str


def works_of(lake_id: str, flows: Iterable[ResolvedFlow]) -> list[Work]:
    """What there is to do for some flows."""
    flows = list(flows)
    landings = dict.fromkeys(flow.source for flow in flows)
    return [
        *(
            Work(f"flow {flow.name}", flow.name, flow.target, group_of_flow(lake_id, flow.name))
            for flow in flows
        ),
        *(
            Work(f"landing of cluster {alias}", None, alias, group_of_landing(lake_id, alias))
            for alias in landings
        ),
    ]


def read_workers(
    connections: Connections, works: Iterable[Work]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns {"work", "flow", "cluster", "state", "host", "pid", "since"} of each process that
    works or stands by, `since` when it does in its own clock; and a sentence for each cluster that
    was not answered for."""
    by_cluster: dict[str, list[Work]] = defaultdict(list)
    for work in works:
        by_cluster[work.cluster].append(work)
    asked = [_Asked(connections, alias, there) for alias, there in by_cluster.items()]
    deadline = time.monotonic() + ANSWER_SECONDS
    rows: list[dict[str, Any]] = []
    unchecked: list[str] = []
    for one in asked:
        why = one.wait(deadline - time.monotonic())
        rows += one.rows
        if why is not None:
            unchecked.append(f"who works at cluster {one.alias} was not asked: {why}")
    return rows, unchecked


class _Asked:
    """One cluster, asked in a thread that is left behind when it does not answer in time."""

    def __init__(self, connections: Connections, alias: str, works: list[Work]) -> None:
        self.alias = alias
        self.rows: list[dict[str, Any]] = []
        self._connections, self._works = connections, works
        self._why: str | None = f"it did not answer within {ANSWER_SECONDS:.0f} s"
        self._done = threading.Event()
        threading.Thread(target=self._ask, name=f"workers at {alias}", daemon=True).start()

    def wait(self, seconds: float) -> str | None:
        """Why it is not known who works, None where it is."""
        self._done.wait(max(0.0, seconds))
        return self._why

    def _ask(self) -> None:
        groups = [work.group for work in self._works]
        try:
            admin = self._connections.groups(self.alias)
            members, positions = admin.members(groups), admin.positions(groups)
            self.rows = rows_of(self._works, members, positions)
            self._why = next(iter(members.errors.values()), None)
        except MirrorlakeError as error:
            self._why = str(error)
        finally:
            self._done.set()


def rows_of(
    works: Iterable[Work], members: GroupMembers, positions: GroupPositions
) -> list[dict[str, Any]]:
    """The rows of `read_workers`, who works first. A member that works says with its commit since
    when, and one that stands by in its client's name."""
    rows = []
    for work in works:
        committed = positions.positions.get(work.group, {}).get((TOPIC, PARTITION))
        worker = None if committed is None else process_of(committed.metadata)
        there = sorted(members.members.get(work.group, ()), key=lambda member: not member[1])
        for client, has_partition in there:
            known = process_of_client(client)
            if has_partition and worker is not None and known is not None:
                known = worker if worker[:2] == known[:2] else known
            row = {"work": work.text, "flow": work.flow, "cluster": work.cluster}
            state = WORKS if has_partition else STANDS_BY
            rows.append({**row, "state": state, **_named(known)})
    return rows


def _named(process: tuple[str, int, str] | None) -> Mapping[str, object]:
    host, pid, since = process or (None, None, None)
    return {"host": host, "pid": pid, "since": since}
