"""Which processes work and which stand by, according to the groups on the clusters (`status`)."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.groups import GroupMembers, GroupPositions
from mirrorlake.kafka.question import Question
from mirrorlake.naming.worker_groups import (
    PARTITION,
    TOPIC,
    group_of_flow,
    group_of_landing,
    process_of,
    process_of_client,
    work_of_flow,
    work_of_landing,
)

#: How long to wait for all clusters together, seconds.
ANSWER_SECONDS = 6.0
WORKS, STANDS_BY = "works", "stands by"


class SoleWork(NamedTuple):
    """Work that one process at a time does, and the group on `cluster` of the processes that may do
    it. The flow of a landing is None."""

    text: str
    flow: str | None
    cluster: str
    group: str


def works_of(lake_id: str, flows: Iterable[ResolvedFlow]) -> list[SoleWork]:
    """The works of some flows: each flow, and the landing of each source."""
    flows = list(flows)
    landings = dict.fromkeys(flow.source for flow in flows)
    return [
        *(
            SoleWork(
                work_of_flow(flow.name), flow.name, flow.target, group_of_flow(lake_id, flow.name)
            )
            for flow in flows
        ),
        *(
            SoleWork(work_of_landing(alias), None, alias, group_of_landing(lake_id, alias))
            for alias in landings
        ),
    ]


def read_workers(
    connections: Connections, works: Iterable[SoleWork]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns {"work", "flow", "cluster", "state", "host", "pid", "since"} of each process that
    works or stands by, with `since` by its own clock; and a sentence for each cluster that did not
    answer in full."""
    by_cluster: dict[str, list[SoleWork]] = defaultdict(list)
    for work in works:
        by_cluster[work.cluster].append(work)
    silence = f"it did not answer within {ANSWER_SECONDS:.0f} s"
    asked = {
        alias: Question(f"workers at {alias}", partial(_ask, connections, alias, there), silence)
        for alias, there in by_cluster.items()
    }
    deadline = time.monotonic() + ANSWER_SECONDS
    rows: list[dict[str, Any]] = []
    unchecked: list[str] = []
    for alias, question in asked.items():
        answer, why = question.answer(deadline - time.monotonic())
        if answer is not None:
            rows += answer[0]
            why = answer[1]
        if why:
            unchecked.append(f"who works at cluster {alias} was not asked: {why}")
    return rows, unchecked


def _ask(
    connections: Connections, alias: str, works: Sequence[SoleWork]
) -> tuple[list[dict[str, Any]], str]:
    """The rows of one cluster, and why some groups were not answered for, if any."""
    groups, admin = [work.group for work in works], connections.groups(alias)
    members, positions = admin.members(groups), admin.positions(groups)
    return rows_of(works, members, positions), next(iter(members.errors.values()), "")


def rows_of(
    works: Iterable[SoleWork], members: GroupMembers, positions: GroupPositions
) -> list[dict[str, Any]]:
    """The rows of `read_workers`, working processes first. A working member is named by its commit,
    one that stands by by its client's name.

    Where a process was started again within a session, the brokers go on giving the name of the
    client that had its `group.instance.id` before it (KIP-345); its commit is the newer of the two.
    """
    rows = []
    for work in works:
        committed = positions.positions.get(work.group, {}).get((TOPIC, PARTITION))
        worker = None if committed is None else process_of(committed.metadata)
        there = sorted(members.members.get(work.group, ()), key=lambda member: not member[1])
        for client, has_partition in there:
            known = process_of_client(client)
            if has_partition and worker is not None and known is not None:
                known = worker if worker.follows(known) else known
            row = {"work": work.text, "flow": work.flow, "cluster": work.cluster}
            state = WORKS if has_partition else STANDS_BY
            rows.append({**row, "state": state, **_named(known)})
    return rows


def _named(process: tuple[str, int, str] | None) -> Mapping[str, object]:
    host, pid, since = process or (None, None, None)
    return {"host": host, "pid": pid, "since": since}
