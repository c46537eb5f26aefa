"""Translates settings of Kafka's Java clients for `consumer`, `producer` and `admin` blocks.

`consumer` keeps the names of the Java consumer; `producer` and `admin` have librdkafka's.
"""

from mirrorlake.config.client_settings import by_name
from mirrorlake.mm2.importer.entries import Entry, SettingOutcome, Value
from mirrorlake.mm2.importer.flow_keys import number

#: Names that Kafka's Java clients and librdkafka share, with the same meaning.
_SHARED = frozenset(
    "client.id client.dns.lookup metadata.max.age.ms connections.max.idle.ms reconnect.backoff.ms "
    "reconnect.backoff.max.ms retry.backoff.ms retry.backoff.max.ms "
    "socket.connection.setup.timeout.ms".split()
)
_SOCKETS = {
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
CARRIED = {
    "consumer": _SHARED.union(
        "fetch.min.bytes fetch.max.bytes fetch.max.wait.ms max.partition.fetch.bytes "
        "max.poll.records receive.buffer.bytes send.buffer.bytes request.timeout.ms "
        "default.api.timeout.ms client.rack check.crcs "
        "socket.connection.setup.timeout.max.ms".split()
    ),
    "producer": _SHARED.union(
        "compression.type linger.ms batch.size request.timeout.ms transaction.timeout.ms".split()
    ),
    "admin": _SHARED,
}
"""Per role: names that are carried over as they are, but for WITHOUT_COUNTERPART."""

WITHOUT_COUNTERPART = frozenset(
    "max.poll.records request.timeout.ms default.api.timeout.ms "
    "socket.connection.setup.timeout.max.ms".split()
)
"""Those of a consumer that librdkafka, which reads, has no setting for (`kafka/config.py`)."""

RENAMED = {
    "consumer": {},
    "producer": _SOCKETS,
    "admin": {**_SOCKETS, "request.timeout.ms": "socket.timeout.ms"},
}
"""Per role: librdkafka's names for what the Java client calls differently."""

NOT_NEEDED = by_name(
    {
        "mirrorlake names its groups and transactions itself": "group.id group.instance.id "
        "transactional.id",
        "mirrorlake copies bytes": "key.serializer value.serializer key.deserializer "
        "value.deserializer",
        "the stage keeps what was read, not a group": "enable.auto.commit auto.commit.interval.ms",
        "partitions are read without the membership of a group": "partition.assignment.strategy "
        "session.timeout.ms heartbeat.interval.ms max.poll.interval.ms group.protocol",
        "internal topics are never mirrored": "exclude.internal.topics",
        "mirrorlake reads topics that exist, and makes the ones it writes": (
            "allow.auto.create.topics"
        ),
        "mirrorlake always writes idempotently": "enable.idempotence",
        "librdkafka tries again until the delivery's time is over": "retries",
        "a record's time ends with its transaction: producer setting transaction.timeout.ms": (
            "delivery.timeout.ms"
        ),
        "mirrorlake waits for room in the producer's queue": "max.block.ms",
        "a record keeps its partition number": "partitioner.class partitioner.ignore.keys "
        "partitioner.adaptive.partitioning.enable",
        "metrics are the tables latency and positions, not JMX": "metric.reporters "
        "metrics.recording.level metrics.num.samples metrics.sample.window.ms "
        "auto.include.jmx.reporter",
        "mirrorlake asks brokers only": "zookeeper.connect zookeeper.connection.timeout.ms",
    }
)
_INTERCEPTORS = "interceptors are Java classes; mirrorlake copies records as they are"
_LARGEST = 1_000_000_000
"""`message.max.bytes` of `produce/spec.py`."""


def translate(entry: Entry, role: str, name: str) -> SettingOutcome | None:
    """What a Java client's setting means; `name` is the key without its prefix. None if unknown.

    Raises InputError for a value that no client would accept.
    """
    if name in NOT_NEEDED:
        return SettingOutcome(not_needed=NOT_NEEDED[name])
    if role == "consumer" and name in WITHOUT_COUNTERPART:
        return SettingOutcome(not_needed="librdkafka, which reads, has no such setting")
    if name in CARRIED[role] or name in RENAMED[role]:
        if "${" in entry.value:
            return SettingOutcome(
                not_supported="it is a reference that mirrorlake cannot read here; write the value "
                "itself"
            )
        return SettingOutcome({RENAMED[role].get(name, name): _value(entry.value)})
    if name == "interceptor.classes":
        if entry.value:
            return SettingOutcome(not_supported=_INTERCEPTORS)
        return SettingOutcome(not_needed="it is empty")
    return {"consumer": _consumer, "producer": _producer, "admin": _nothing}[role](entry, name)


def is_security(name: str) -> bool:
    """Whether a client's setting belongs to the security block of a cluster."""
    return name == "security.protocol" or name.startswith(("ssl.", "sasl."))


def _value(text: str) -> Value:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if text.lstrip("-").isdecimal() else text


def _nothing(entry: Entry, name: str) -> SettingOutcome | None:
    if name == "default.api.timeout.ms":
        return SettingOutcome(not_needed="calls have a fixed deadline")
    return None


def _consumer(entry: Entry, name: str) -> SettingOutcome | None:
    if name == "isolation.level":
        if entry.value == "read_committed":
            return SettingOutcome(not_needed="mirrorlake always reads committed records only")
        return SettingOutcome(
            not_supported="mirrorlake mirrors no records of open or aborted transactions"
        )
    if name == "auto.offset.reset":
        if entry.value in ("earliest", "smallest"):
            return SettingOutcome(not_needed="mirrorlake starts at the oldest record of a topic")
        return SettingOutcome(
            not_supported="write start: latest into the flow, which holds for topics that are "
            "there at its first run; "
            "records that are gone later are an incident, and nothing goes on elsewhere"
        )
    return None


def _producer(entry: Entry, name: str) -> SettingOutcome | None:
    if name == "acks":
        if entry.value in ("all", "-1"):
            return SettingOutcome(not_needed="mirrorlake always waits for all in-sync replicas")
        return SettingOutcome(
            not_supported="mirrorlake always waits for all in-sync replicas, which exactly once "
            "needs"
        )
    if name == "max.in.flight.requests.per.connection":
        if number(entry) <= 5:
            return SettingOutcome({name: number(entry)})
        return SettingOutcome(
            not_supported="more than 5 requests in flight are not possible with exactly once"
        )
    if name == "max.request.size":
        if number(entry) <= _LARGEST:
            return SettingOutcome(
                not_needed="mirrorlake's producer takes 1 GB; the target's brokers decide what is "
                "too large"
            )
        return SettingOutcome(
            not_supported="librdkafka takes records of up to 1 GB, and so mirrorlake's producer"
        )
    if name == "buffer.memory":
        return SettingOutcome({"queue.buffering.max.kbytes": max(1, number(entry) // 1024)})
    return None
