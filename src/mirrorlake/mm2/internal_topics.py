"""Writes to MirrorMaker 2's internal topics: one partition, compacted, made on first write."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from mirrorlake.errors import ClusterUnreachable, TargetRefused
from mirrorlake.kafka.access import topic_rights
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_configs import alter_topic_configs, describe_topic_configs
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.kafka.refusals import reason_of
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.mm2.topics import (
    INTERNAL_CONFIGS,
    INTERNAL_FACTOR,
    INTERNAL_PARTITIONS,
    internal_factor,
)

logger = logging.getLogger(__name__)

#: These override a cluster's `producer` block: a retry must not reorder the last write of a key.
_SETTINGS: Settings = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "message.timeout.ms": int(ANSWER_SECONDS * 1000),
}
_NO_ANSWER = frozenset(
    {KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN}
)


_CLEANUP = "cleanup.policy"
_RIGHTS = frozenset({"DESCRIBE_CONFIGS", "ALTER_CONFIGS"})


class Compacted(NamedTuple):
    """A topic's `cleanup.policy` before the change, and the error of a refusal, else None."""

    before: str
    error: str | None


class _Edit(NamedTuple):
    target_topic: str
    key: str
    after: str


class InternalTopic:
    """An internal topic. Connects on first use; calls return within a few ANSWER_SECONDS."""

    def __init__(
        self,
        admin: ClusterAdmin,
        producer: LiveSettings[str | int | bool],
        name: str,
        factor: int | None,
        made: Callable[[str, TopicInfo], object],
        making: Callable[[str, TopicInfo], object] | None = None,
    ) -> None:
        """Prepare; `producer` are librdkafka settings, `factor` None means MirrorMaker 2's 3.

        `made` is called with the cluster's alias and the topic after its creation, `making` before.
        """
        self.name = name
        self.alias = admin.alias
        self._admin = admin
        self._live = producer
        self._factor = factor
        self._made, self._making = made, making
        self._producer: Producer | None = None
        self._ready = False
        self._topic_id: str | None = None
        self._unreported: TopicInfo | None = None  # created, but `made` was not called yet
        self._lock = threading.Lock()

    def replaced(self) -> bool:
        """Whether Kafka's topic id changed since the last call: the topic was deleted and
        recreated, perhaps by a broker that creates topics on a client's request. A missing topic is
        created by the next `ensure`. Asks the cluster each time.

        Raises:
            ClusterUnreachable, AuthenticationFailed, KafkaException: the cluster cannot be asked.
        """
        with self._lock:
            known, missing = self._admin.identities([self.name])
            if self.name in missing:
                self._ready = False
            before = self._topic_id
            if self.name in known:  # otherwise the answer does not include the topic
                self._topic_id = known[self.name].topic_id
            return before is not None and before != self._topic_id

    def ensure(self) -> bool:
        """Create the topic unless it exists, in whatever shape; return whether it was created. Asks
        the cluster once, and again after a failure.

        Raises:
            ClusterUnreachable, AuthenticationFailed: the cluster cannot be asked.
            TargetRefused: the cluster refuses to create it.
        """
        with self._lock:
            if self._ready:
                return False
            topic = self.missing()
            if topic is not None:
                if self._making is not None:
                    self._making(self.alias, topic)
                self._admin.create_topics([topic])
                self._topic_id, self._unreported = None, topic
            made = self._unreported is not None
            if self._unreported is not None:
                self._made(self.alias, self._unreported)
            self._unreported, self._ready = None, True
            return made

    def missing(self) -> TopicInfo | None:
        """The topic to make, None if it exists. Raises ClusterUnreachable, AuthenticationFailed."""
        if self.name in self._admin.topics():
            return None
        brokers = self._admin.registered_brokers(self.name, self._factor or INTERNAL_FACTOR)
        factor = internal_factor(self._factor, brokers)
        return TopicInfo(self.name, INTERNAL_PARTITIONS, factor, INTERNAL_CONFIGS)

    def is_empty(self) -> bool:
        """Whether the topic was never written to. Raises ClusterUnreachable."""
        return self._admin.end_offsets([(self.name, 0)])[self.name, 0] == 0

    def compact(self) -> Compacted | None:
        """Set cleanup.policy to compact if it was never set on the topic; return None if nothing
        had to change, or the cluster does not report the config.

        A broker with auto.create.topics.enable creates a topic as soon as a client asks for it,
        with its own defaults, which delete our records after some days. Without the rights nothing
        is requested: each refused request is a line in the cluster's security log. Raises
        ClusterUnreachable, or KafkaException when no broker answers.
        """
        rights = topic_rights(self._admin.client, [self.name]).get(self.name)
        if rights is not None and not rights >= _RIGHTS:
            return None
        configs = describe_topic_configs(self._admin, [self.name]).configs.get(self.name, {})
        policy = configs.get(_CLEANUP)
        if policy is None or policy.value in (None, "compact") or policy.origin == "topic":
            return None
        edit = _Edit(self.name, _CLEANUP, "compact")
        return Compacted(policy.value, alter_topic_configs(self._admin, [edit])[edit])

    def write(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        """Write keys and values in order, and wait until all are acknowledged. Raises as `ensure`.

        After an error any of them may have been written, or none.
        """
        self.ensure()
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failed.append(error)

        with self._lock:
            producer = self._connected()
            for key, value in records:
                self._send(producer, key, value, delivered)
            left = producer.flush(ANSWER_SECONDS + 1)
            if left or failed:
                self._ready = False  # it may have been deleted
                if self._live.renewed(refused=True):  # a refused login looks like silence here
                    self._producer = None
                raise self._refusal(failed[0] if failed else KafkaError(KafkaError._MSG_TIMED_OUT))

    def _send(self, producer: Producer, key: bytes, value: bytes, on_delivery) -> None:  # type: ignore[no-untyped-def]
        while True:
            try:
                producer.produce(self.name, value, key, partition=0, on_delivery=on_delivery)
                producer.poll(0)
                return
            except BufferError:  # the queue is full; messages leave it within their timeout
                producer.poll(0.1)

    def _connected(self) -> Producer:
        if self._live.renewed() or self._producer is None:
            self._producer = Producer({**self._live.now, **_SETTINGS, "logger": logger})
        return self._producer

    def _refusal(self, error: KafkaError) -> ClusterUnreachable | TargetRefused:
        if error.code() in _NO_ANSWER:
            return ClusterUnreachable(
                f"cluster {self.alias} does not take records of topic {self.name} within "
                f"{ANSWER_SECONDS:.0f} s; check that the topic's leader runs",
                alias=self.alias,
            )
        return TargetRefused(
            f"cannot write to topic {self.name} on cluster {self.alias}: {reason_of(error)}",
            topic=self.name,
            reason=error.name(),
        )
