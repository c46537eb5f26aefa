"""The right to do what a process runs: by leases in the lake, where two processes of one flow are a
mistake, or by Kafka groups, where they stand by for each other."""

import logging
import socket
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from functools import partial
from os import getpid

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import MirrorlakeError
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.changes import Change
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lease import AnyLease, Lease
from mirrorlake.naming.worker_groups import (
    TOPIC,
    Process,
    group_of_flow,
    group_of_landing,
    work_of_flow,
    work_of_landing,
)
from mirrorlake.run.group_lease import GroupLease
from mirrorlake.threads import side_by_side
from mirrorlake.worker import Worker

logger = logging.getLogger(__name__)

#: The kind of incident while a process cannot be a member of a group.
NOT_A_MEMBER = "not_a_member"
#: How many processes of one lake can have a name on one host.
_NAMES = 64


class Leases:
    """The leases of one process, which runs flows of one topology file. With `once`, taking one
    waits seconds; `standby` joins a group only behind a working process; `brief`: see `Lease`."""

    def __init__(
        self,
        deployment: Deployment,
        *,
        once: bool = False,
        standby: bool = False,
        brief: bool = False,
    ) -> None:
        self._lake = deployment.lake
        self._connections = deployment.connections
        self._event_log = deployment.event_log
        self._refusals = _Refusals(deployment.event_log)
        self._once, self._standby, self._brief = once, standby, brief
        #: Whether processes stand by for each other.
        self.by_kafka = deployment.connections.topology.availability == "kafka"
        self._kept: dict[str, GroupLease] = {}
        #: The errors of groups left by `give_up` that this process could not be a member of.
        self.errors: list[MirrorlakeError] = []
        self._name: HostName | None = None
        self._process = _this_process()

    @property
    def any_held(self) -> bool:
        """Whether this process may do any work."""
        return not self.by_kafka or any(lease.held for lease in list(self._kept.values()))

    @property
    def stands_by(self) -> bool:
        """Whether this process stands by for work that another one does."""
        return any(lease.held_elsewhere for lease in list(self._kept.values()))

    @property
    def are_settled(self) -> bool:
        """Whether each lease that Kafka keeps has a known holder, or is not asked for yet."""
        return all(lease.is_settled for lease in list(self._kept.values()))

    @property
    def workers(self) -> list[Worker]:
        """The threads of the leases that Kafka keeps."""
        threads = [lease.thread for lease in list(self._kept.values())]
        return [thread for thread in threads if thread is not None]

    def use(self, connections: Connections) -> None:
        """Use the clusters of an edited file."""
        self._connections = connections

    def of_flow(self, flow: ResolvedFlow) -> AnyLease:
        """The lease of a flow; if Kafka keeps it, this process is a member from now on."""
        if not self.by_kafka:
            return Lease(self._lake, work_of_flow(flow.name), self._brief)
        group = group_of_flow(self._lake.lake_id, flow.name)
        return self._member(work_of_flow(flow.name), group, flow.target, [flow.name])

    def of_landing(self, alias: str, flows: Collection[str]) -> AnyLease:
        """The lease of landing a cluster, for flows that read from it; likewise."""
        if not self.by_kafka:
            return Lease(self._lake, work_of_landing(alias))
        group = group_of_landing(self._lake.lake_id, alias)
        return self._member(work_of_landing(alias), group, alias, flows)

    def give_up(self, what: str) -> None:
        """Leave the group of `flow A->B`, or `landing of cluster A`, if this process is in it."""
        lease = self._kept.pop(what, None)
        if lease is not None:
            lease.leave()
            self.errors += [] if lease.error is None else [lease.error]
            self._refusals.forget(what)

    def leave_when_ended(self, threads: Mapping[str, Worker]) -> None:
        """Leave each group as soon as the thread that does its work has ended, whatever else this
        process has to end: until then no other process goes on. Returns when all are left."""

        def leave(what: str) -> None:
            threads[what].join()
            self.give_up(what)

        side_by_side(leave, threads.keys(), len(threads))

    def is_deserted(self, flow: str) -> bool:
        """Whether no process runs a flow or stands by, this one aside. False if unknown."""
        try:
            if not self.by_kafka:
                return Lease(self._lake, work_of_flow(flow)).lock.holder() is None
            group = group_of_flow(self._lake.lake_id, flow)
            target = self._connections.groups(flow.rpartition("->")[2])
            return not target.members([group]).members.get(group, [flow])
        except MirrorlakeError as error:
            logger.info("who runs flow %s is not known: %s", flow, error)
            return False

    def close(self) -> None:
        """Leave all groups."""
        for what in list(self._kept):
            self.give_up(what)
        if self._name is not None:
            self._name.close()

    def _member(self, what: str, group: str, alias: str, flows: Collection[str]) -> GroupLease:
        if what not in self._kept:
            self._name = self._name or HostName(self._lake.lake_id)

            def made(where: str, topic: TopicInfo) -> None:
                shape = f"partitions={topic.partitions}, factor={topic.factor}"
                change = Change("topic", f"{TOPIC} on cluster {where}", None, shape)
                for flow in flows:
                    self._event_log.record(flow, [change])

            lease = GroupLease(
                what,
                group,
                alias,
                lambda: self._connections,
                process=self._process,
                instance=self._name.text,
                waits=self._once,
                joins_after_others=self._standby,
                made=made,
                refused=partial(self._refusals.note, what, flows),
            )
            lease.join()
            self._kept[what] = lease
        return self._kept[what]


class _Refusals:
    """What keeps this process from being a member, by flow. A flow has one incident, which closes
    once all groups that it needs accept this process. For the threads of all leases."""

    def __init__(self, event_log: EventLog) -> None:
        self._event_log = event_log
        self._use = threading.Lock()
        self._refused: dict[str, set[str]] = defaultdict(set)

    def note(self, what: str, flows: Collection[str], problem: MirrorlakeError | None) -> None:
        """Note that work is refused to this process for flows; no longer, if `problem` is None."""
        with self._use:
            for flow in flows:
                refused = self._refused[flow]
                if problem is not None:
                    refused.add(what)
                    self._event_log.incidents.open(flow, NOT_A_MEMBER, problem)
                    continue
                refused.discard(what)
                if not refused:
                    self._event_log.incidents.close_kinds([flow], [NOT_A_MEMBER])

    def forget(self, what: str) -> None:
        """Forget work that this process is no longer to do."""
        with self._use:
            for refused in self._refused.values():
                refused.discard(what)


class HostName:
    """A name for a process in groups: the host's, with the lowest number that no other process of
    the same lake has there. A restarted process gets the name that it had before, so the group
    gives it back its partition. `text` is None where the system has no abstract sockets.

    The number is an address of Linux's abstract sockets: it ends with the process, needs no file,
    and is unique among the processes that share the host's network, and so its name.
    """

    def __init__(self, lake_id: str) -> None:
        self.text: str | None = None
        self._socket: socket.socket | None = None
        for number in range(_NAMES):
            mine = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                mine.bind(f"\0mirrorlake-{lake_id}-{number}")
            except OSError:
                mine.close()
                continue
            self.text, self._socket = f"{socket.gethostname()}-{number}", mine
            return

    def close(self) -> None:
        """Give the number up."""
        if self._socket is not None:
            self._socket.close()


def lease_of_flow(deployment: Deployment, name: str) -> AnyLease:
    """The lease of a flow for a command that must be the only process: if Kafka keeps it, the
    command is a member from `take` to `release`."""
    topology = deployment.connections.topology
    target = name.rpartition("->")[2]
    if topology.availability != "kafka" or target not in topology.clusters:
        return Lease(deployment.lake, work_of_flow(name), brief=True)
    return GroupLease(
        work_of_flow(name),
        group_of_flow(deployment.lake.lake_id, name),
        target,
        lambda: deployment.connections,
        process=_this_process(),
        waits=True,
    )


def _this_process() -> Process:
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Process(socket.gethostname(), getpid(), now)
