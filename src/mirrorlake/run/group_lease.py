"""A lease that Kafka keeps: the processes that may do a piece of work are members of a consumer
group, and the one that has the partition of its topic does it (docs/high_availability.md).

Membership decides only which process tries. The target's transactions and Delta's commits keep
anything from being written twice, as they do without it.
"""

import logging
import time
from collections.abc import Callable
from functools import partial

from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import LeaseTaken, MirrorlakeError, ReplicationError
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.refusals import reason_of
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.mm2.internal_topics import InternalTopic
from mirrorlake.naming.worker_groups import TOPIC, Process, client_id
from mirrorlake.produce.deadline import within
from mirrorlake.run.group_member import CALL_SECONDS, POLL_SECONDS, SESSION_SECONDS, GroupMember
from mirrorlake.spark.causes import as_mirrorlake_error
from mirrorlake.worker import Failure, Retry, Worker

logger = logging.getLogger(__name__)

#: How long `take` waits for its turn if it has to: an empty group waits for more members before it
#: assigns partitions (`group.initial.rebalance.delay.ms`, 3 s), and for members that died.
TAKE_SECONDS = SESSION_SECONDS + 10.0
#: How often a process that joins only behind others looks for one that works, seconds.
LOOK_SECONDS = 1.0
PAUSES = (0.5, 1.0, 2.0, 5.0)
#: After how many failures in a row operators learn that a process cannot be a member.
QUIET_FAILURES = 3
#: How often a process that stands by asks which one works, for the log, seconds.
REPORT_SECONDS = 10.0

#: A client's error when another member has its name; fatal in librdkafka, as no other of a member.
_NAME_TAKEN = frozenset({KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL})
_HERE = "is done by this process"
_UNKNOWN = "is not known to be this process's any more"
_WAITS = "waits until another process works"


def worker_topic(
    connections: Connections,
    alias: str,
    made: Callable[[str, TopicInfo], object] = lambda _alias, _topic: None,
) -> InternalTopic:
    """The topic that members of a cluster's groups read; `made` is called if it was created."""
    admin, producer = connections.admin(alias), connections.live(alias, "producer")
    return InternalTopic(admin, producer, TOPIC, None, made)


class GroupLease:
    """The right to `work`, such as `flow east->west`, by a group on cluster `alias`. For a process.

    The process is a member from `join` to `leave`; without `join`, from `take` to `release`.
    """

    stands_by = True

    def __init__(
        self,
        work: str,
        group: str,
        alias: str,
        connections: Callable[[], Connections],
        *,
        process: Process,
        instance: str | None = None,
        waits: bool = False,
        joins_after_others: bool = False,
        made: Callable[[str, TopicInfo], object] = lambda _alias, _topic: None,
        refused: Callable[[MirrorlakeError | None], object] = lambda _problem: None,
    ) -> None:
        """Prepare. `connections` returns those in force; `instance` is a name that no other process
        has at the same time, None for none. With `waits`, `take` waits some seconds;
        `joins_after_others` joins once another process works. `made` gets the topic if it had to be
        created, `refused` the error that keeps this process from being a member, and None once
        nothing does."""
        self.work, self.group, self.alias = work, group, alias
        self._connections = connections
        self._process = process
        self._instance = instance
        self._waits, self._joins_after_others = waits, joins_after_others
        self._made, self._refused = made, refused
        self._is_refused = False
        #: The error that it was left with, if operators saw that this process cannot be a member.
        self.error: MirrorlakeError | None = None
        #: Whether an incident of an earlier process, which died before closing it, may be open.
        self._may_count = True
        self._member: GroupMember | None = None
        self._made_of: object = None
        self._live: LiveSettings[str | int | bool] | None = None
        self._thread: Worker | None = None
        self._joined_to_take = False
        self._reported: str | None = None
        self._asked_at = 0.0

    @property
    def held(self) -> bool:
        """Whether this process works, as far as Kafka has confirmed within a session."""
        member = self._member
        return member is not None and member.works

    @property
    def thread(self) -> Worker | None:
        """The thread that polls the group while this process is in it."""
        return self._thread

    def join(self) -> None:
        """Become a member: this process works, or stands by, as the group decides."""
        if self._thread is None:
            retry = Retry(report=self._report_failure, pauses=PAUSES)
            name = f"member of the group of {self.work}"
            leave = partial(self._end, GroupMember.leave)
            thread = Worker(name, self._turn, retry, leave, self._in_words)
            thread.start()
            self._thread = thread  # only now: one that did not start has to be made again

    def leave(self) -> None:
        """Give the lease up to another process at once; returns when the group knows."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()
            thread.join(2 * CALL_SECONDS)
            self.error = thread.error if self._is_refused else None

    def take(self, sure: bool = False) -> None:
        """See `Lease.take`: Kafka is always sure. A process that is no member joins."""
        if self._thread is None:
            self._joined_to_take = True
            self.join()
        deadline = time.monotonic() + (TAKE_SECONDS if self._waits else 0.0)
        while not self.held and not self.held_elsewhere and time.monotonic() < deadline:
            assert self._thread is not None
            self._thread.ended.wait(POLL_SECONDS / 2)
        if not self.held:
            standing = self._reported or "is not known to be free"
            self.release()
            raise LeaseTaken(f"{self.work} {standing}; stop that process, or let it do the work")

    def release(self) -> None:
        """See `Lease.release`; a process that had joined before `take` stays a member."""
        if self._joined_to_take:
            self._joined_to_take = False
            self.leave()

    @property
    def held_elsewhere(self) -> bool:
        """Whether another process is known to have it."""
        member = self._member
        return member is not None and member.stands_by

    @property
    def is_settled(self) -> bool:
        """Whether its holder is known, or this process waits until another one works."""
        return self.held or self.held_elsewhere or self._reported == _WAITS

    def _turn(self) -> float:
        """Poll the group; return how long to wait before the next turn, in seconds."""
        if self._joins_after_others and not self._others_work():
            self._say(_WAITS)
            if self._is_refused:  # it could be a member, but is not to be one yet
                self._refused(None)
                self._is_refused = False
            return LOOK_SECONDS
        try:
            member = self._connected()
            member.poll()
        except BaseException as error:
            self._end(GroupMember.close)
            self._look_at(error)
            raise
        self._tell(member)
        if self._is_refused or (self._may_count and member.works):
            self._refused(None)
            self._is_refused = self._may_count = False
        return 0.0

    def _others_work(self) -> bool:
        asked = self._connections().groups(self.alias).members([self.group])
        if self.group in asked.errors:
            raise ReplicationError(
                f"who does {self.work} is not known: {asked.errors[self.group]}; check that "
                f"cluster {self.alias} lets group {self.group} be described"
            )
        works = any(has for _, has in asked.members[self.group])
        self._joins_after_others = not works
        return works

    def _connected(self) -> GroupMember:
        connections = self._connections()
        cluster = connections.topology.clusters[self.alias]
        if self._member is not None and (cluster != self._made_of or self._secrets_renewed()):
            self._end(GroupMember.close)  # the group keeps its name, and its partition, for it
        if self._member is None:
            worker_topic(connections, self.alias, self._made).ensure()
            self._live, self._made_of = connections.live(self.alias, "consumer"), cluster
            client = {**self._live.now, "client.id": client_id(self.alias, self._process)}
            protocol = str(cluster.consumer.get("group.protocol", "classic"))
            self._member = GroupMember(self.group, client, protocol, self._instance, self._process)
        return self._member

    def _secrets_renewed(self) -> bool:
        return self._live is not None and self._live.renewed()

    def _look_at(self, error: BaseException) -> None:
        """Drop this process's name if another process has it as well."""
        fenced = isinstance(error, KafkaException) and error.args[0].code() in _NAME_TAKEN
        if fenced and self._instance is not None:
            logger.warning(
                "%s: another process is called %s; this one goes on without a name",
                *(self.work, self._instance),
            )
            self._instance = None

    def _tell(self, member: GroupMember) -> None:
        """Log what this process does now, when that changes."""
        if member.works:
            self._say(_HERE)
            self._asked_at = 0.0
        elif member.stands_by and time.monotonic() - self._asked_at > REPORT_SECONDS:
            self._asked_at = time.monotonic()
            worker = member.worker()
            unknown = worker is None or worker == self._process
            self._say(f"is done by {'another process' if unknown else worker}")
        elif self._reported == _HERE:
            self._say(_UNKNOWN)

    def _say(self, standing: str) -> None:
        if standing != self._reported:
            self._reported = standing
            also = "" if standing == _HERE else "; this one stands by"
            logger.warning("%s %s%s", self.work, standing, also)

    def _in_words(self, error: BaseException, name: str) -> MirrorlakeError:
        if not isinstance(error, KafkaException):
            return as_mirrorlake_error(error, name)
        return ReplicationError(
            f"this process cannot be a member of group {self.group} on cluster {self.alias}, so it "
            f"does not stand by for {self.work}: {reason_of(error.args[0])}; if a right is "
            f"missing, its principal needs READ on that group, and on topic {TOPIC} READ and CREATE"
        )

    def _report_failure(self, failure: Failure) -> None:
        logger.warning("%s: %s; trying again", self.work, failure.problem)
        if failure.attempt >= QUIET_FAILURES:
            self._is_refused = True
            self._refused(failure.problem)

    def _end(self, how: Callable[[GroupMember], object]) -> None:
        """End the client, without waiting for it: if its cluster is away, that may take long."""
        member, self._member = self._member, None
        if member is None:
            return
        try:
            what = f"{self.work}: ending a member of its group"
            within(CALL_SECONDS, lambda _seconds: how(member), what)
        except (KafkaException, RuntimeError) as error:
            logger.info("%s", error)
