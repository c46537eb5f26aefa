"""A member of a group whose only partition means "works": a Kafka client and the state of its
membership (docs/high_availability.md). For one thread, except for what `membership` says."""

import logging
import threading
import time
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mirrorlake.errors import TopologyError
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.kafka.refusals import reason_of
from mirrorlake.naming.worker_groups import PARTITION, TOPIC, Process, process_of
from mirrorlake.run.membership import Membership

logger = logging.getLogger(__name__)

#: How long a member that has gone silent keeps its partition, by the classic protocol. Kafka's 45 s
#: would be most of a minute without a record; brokers refuse less than 6 s, and a host that is busy
#: for some seconds must not lose its work. The rest of 20 s is for the group to rebalance, and for
#: a flow and its landing to begin (docs/high_availability.md, "Figures").
SESSION_SECONDS = 10.0
#: How often the client sends a heartbeat. By the answer it learns that another member has left, so
#: this is how long no process works when a process ends in order.
HEARTBEAT_SECONDS = 1.0
#: How long a thread of this process may not poll before the client itself gives up.
POLL_LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.2
#: How long a call to the coordinator may take.
CALL_SECONDS = 5.0
#: By the newer protocol no callback tells a member that it got nothing: this long without one does.
SILENT_SECONDS = 5.0

#: Errors from which a client recovers by itself: they do not end the membership.
_PASSING = frozenset(
    {
        *(KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._RESOLVE),
        *(KafkaError._TIMED_OUT, KafkaError._MAX_POLL_EXCEEDED, KafkaError._PARTITION_EOF),
    }
)


class GroupMember:
    """A client that is in a group from now until `close` or `leave`. `client` are settings of a
    consumer, with its name; `protocol` is Kafka's `group.protocol`, `instance` a name that no other
    member has, None for none. Raises KafkaException, TopologyError."""

    def __init__(
        self, group: str, client: Settings, protocol: str, instance: str | None, process: Process
    ) -> None:
        self._process = process
        self._membership = Membership(session_seconds(client))
        self._lock = threading.Lock()
        self._calls_all = protocol == "classic"
        self._began = now()
        settings = {**member_settings(client, protocol, instance), "group.id": group}
        self._consumer = Consumer({**settings, "logger": logger})
        self._consumer.subscribe(
            [TOPIC], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    @property
    def works(self) -> bool:
        """Whether this process works, as far as Kafka has confirmed within a session."""
        with self._lock:
            return self._membership.works(now())

    @property
    def stands_by(self) -> bool:
        """Whether the group has assigned its partition, to another process."""
        with self._lock:
            return self._membership.joined and not self._membership.has_partition

    def poll(self) -> None:
        """Poll the group. Raises KafkaException for what only a new client or an operator mends."""
        message = self._consumer.poll(POLL_SECONDS)
        with self._lock:
            self._membership.polled(now())
            silent = not self._membership.joined and not self._calls_all
            if silent and now() - self._began > SILENT_SECONDS:
                self._membership.assigned(False)
            tenure, due = self._membership.tenure, self._membership.to_confirm
        if message is not None and (error := message.error()) is not None:
            if error.code() not in _PASSING:
                raise KafkaException(error)
            logger.debug("a group of workers: %s", reason_of(error))
        if due:
            self._confirm(tenure)

    def worker(self) -> Process | None:
        """The process that last committed that it works, this one or another; None if unknown."""
        try:
            (place,) = self._consumer.committed([TopicPartition(TOPIC, PARTITION)], CALL_SECONDS)
        except KafkaException as error:
            logger.debug("a group of workers: %s", reason_of(error.args[0]))
            return None
        return process_of(place.metadata or "")

    def close(self) -> None:
        """End the client. If it has a name, the group keeps its partition for a session."""
        with self._lock:
            self._membership.lost()
        self._consumer.close()

    def leave(self) -> None:
        """End the client so that the group rebalances at once. Closing a client with a name only
        makes it absent for a session, so it leaves first."""
        with self._lock:
            self._membership.lost()
        self._consumer.unsubscribe()
        for _ in range(3):
            self._consumer.poll(0.1)
        self._consumer.close()

    def _confirm(self, tenure: int) -> None:
        """Have the coordinator confirm, by a commit, that the partition is this process's: it
        refuses one of a member that it gave up. The commit also tells others which one works."""
        place = TopicPartition(TOPIC, PARTITION, 0, self._process.text())
        try:
            (answer,) = self._consumer.commit(offsets=[place], asynchronous=False)
            if answer.error is not None:
                raise KafkaException(answer.error)
        except KafkaException as error:
            # mostly the group is rebalancing: the next poll tries again, or has lost the partition
            logger.info("that this process works is not confirmed: %s", reason_of(error.args[0]))
            return
        with self._lock:
            self._membership.confirm(tenure)

    def _assigned(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        if partitions:
            consumer.incremental_assign(partitions)
            consumer.pause(partitions)  # there is nothing to read
        with self._lock:
            self._membership.assigned(_with_work(partitions))

    def _revoked(self, _consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        if _with_work(partitions):
            with self._lock:
                self._membership.lost()


def _with_work(partitions: Sequence[TopicPartition]) -> bool:
    return any(place.partition == PARTITION for place in partitions)


def now() -> float:
    """Seconds of a clock that, where the host has one, goes on while the host is suspended: another
    process may have got the partition meanwhile."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)  # Linux
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def session_seconds(client: Settings) -> float:
    """How long a confirmation counts: no longer than the group waits for the member, or
    SESSION_SECONDS if that is longer, as brokers set it by the newer protocol."""
    given = client.get("session.timeout.ms")
    return SESSION_SECONDS if given is None else min(SESSION_SECONDS, float(given) / 1_000)


def member_settings(client: Settings, protocol: str, instance: str | None) -> dict[str, object]:
    """A member's client settings beside its group. Raises TopologyError for an unknown protocol.

    By the newer one (KIP-848) the brokers decide how long a session is and how partitions are
    assigned, and refuse a client's settings for these; and a member with a name would keep its
    partition for a session after it has left.
    """
    common = {"enable.auto.commit": False, "allow.auto.create.topics": False}
    limits = {"max.poll.interval.ms": int(POLL_LIMIT_SECONDS * 1000)}
    if protocol == "consumer":
        of_classic = {"session.timeout.ms", "heartbeat.interval.ms"}
        kept = {name: value for name, value in client.items() if name not in of_classic}
        return {**limits, **kept, **common, "group.protocol": "consumer"}
    if protocol != "classic":
        raise TopologyError(f"consumer.group.protocol is classic or consumer, not {protocol}")
    return {
        "session.timeout.ms": int(SESSION_SECONDS * 1000),
        "heartbeat.interval.ms": int(HEARTBEAT_SECONDS * 1000),
        **limits,
        **client,
        **common,
        "partition.assignment.strategy": "cooperative-sticky",
        **({} if instance is None else {"group.instance.id": instance}),
    }
