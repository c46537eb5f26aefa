"""The client settings that a cluster's `consumer`, `producer` and `admin` blocks may contain
(docs/security.md, "Clients").

`producer` and `admin` take librdkafka's names; `consumer` takes those of Kafka's Java consumer, as
in MirrorMaker 2's files, and librdkafka, which does the reading, gets their counterparts
(`kafka/config.py`). Excluded are settings that mirrorlake must own to keep its guarantees, and
those rendered from the `security` block. A test compares the tables with the installed libraries.
"""

from collections.abc import Mapping
from typing import Literal

from mirrorlake.config.topology_file import nearest

Role = Literal["consumer", "producer", "admin"]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def by_name(names: Mapping[str, str]) -> dict[str, str]:
    """Invert a mapping of a value to names in one text: the value by each name."""
    return {name: common for common, text in names.items() for name in text.split()}


_JAVA_TLS = (
    "ssl.cipher.suites ssl.enabled.protocols ssl.keymanager.algorithm ssl.protocol ssl.provider "
    "ssl.secure.random.implementation ssl.trustmanager.algorithm sasl.login.connect.timeout.ms "
    "sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds "
    "sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor "
    "sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms "
    "sasl.oauthbearer.header.urlencode sasl.oauthbearer.scope.claim.name "
    "sasl.oauthbearer.sub.claim.name"
)
JAVA_CONSUMER = _names(
    "auto.include.jmx.reporter check.crcs client.dns.lookup client.id client.rack "
    "connections.max.idle.ms default.api.timeout.ms enable.metrics.push exclude.internal.topics "
    "fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.protocol heartbeat.interval.ms "
    "max.partition.fetch.bytes max.poll.interval.ms max.poll.records metadata.max.age.ms "
    "metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level "
    "metrics.sample.window.ms receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms "
    "request.timeout.ms retry.backoff.max.ms retry.backoff.ms security.providers "
    "send.buffer.bytes session.timeout.ms socket.connection.setup.timeout.max.ms "
    f"socket.connection.setup.timeout.ms {_JAVA_TLS}"
)
"""What the Java consumer of kafka-clients 3.9 takes and mirrorlake leaves to its user: the names
that files of MirrorMaker 2 have. librdkafka, which reads, gets those that it has a counterpart of
(`kafka/config.py`)."""

LIBRDKAFKA = _names(
    "api.version.fallback.ms api.version.request api.version.request.timeout.ms "
    "broker.address.family broker.address.ttl broker.version.fallback client.dns.lookup client.id "
    "client.rack connections.max.idle.ms debug enable.metrics.push https.ca.location https.ca.pem "
    "log.connection.close log_level max.in.flight max.in.flight.requests.per.connection "
    "message.copy.max.bytes message.max.bytes metadata.max.age.ms "
    "metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy "
    "receive.message.max.bytes reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms "
    "retry.backoff.ms socket.connection.setup.timeout.ms socket.keepalive.enable socket.max.fails "
    "socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms "
    "ssl.cipher.suites ssl.crl.location ssl.curves.list ssl.sigalgs.list "
    "topic.metadata.propagation.max.ms topic.metadata.refresh.fast.interval.ms "
    "topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse"
)
"""What any librdkafka 2.16 client takes and mirrorlake leaves to its user."""

LIBRDKAFKA_PRODUCER = LIBRDKAFKA | _names(
    "batch.num.messages batch.size compression.codec compression.level compression.type "
    "delivery.timeout.ms linger.ms message.send.max.retries message.timeout.ms "
    "queue.buffering.backpressure.threshold queue.buffering.max.kbytes "
    "queue.buffering.max.messages queue.buffering.max.ms request.timeout.ms retries "
    "transaction.timeout.ms"
)
"""The same for a producer."""

ROLES: Mapping[Role, tuple[str, frozenset[str]]] = {
    "consumer": ("Kafka's Java consumer, whose names this block has", JAVA_CONSUMER),
    "producer": ("librdkafka, which mirrorlake writes with", LIBRDKAFKA_PRODUCER),
    "admin": ("librdkafka, which mirrorlake asks with", LIBRDKAFKA),
}

#: Settings that mirrorlake sets itself: names by reason.
_OWNED = by_name(
    {
        "write bootstrap_servers of the cluster": "bootstrap.servers metadata.broker.list",
        "group names say which flow reads": "group.id group.instance.id",
        "positions are kept in the lake": "enable.auto.commit auto.commit.interval.ms "
        "enable.auto.offset.store auto.offset.reset",
        "only committed records are mirrored": "isolation.level",
        "mirrorlake assigns partitions": "partition.assignment.strategy",
        "only the plan makes topics": "allow.auto.create.topics",
        "records are copied as bytes": "key.deserializer value.deserializer key.serializer "
        "value.serializer interceptor.classes",
        "exactly once depends on it": "transactional.id enable.idempotence "
        "enable.gapless.guarantee acks request.required.acks",
        "a record keeps its source's partition": "partitioner partitioner.class "
        "partitioner.ignore.keys",
    }
)

#: Settings of the security block: Kafka's names by the key there.
_SECURITY = by_name(
    {
        "protocol": "security.protocol",
        "mechanism": "sasl.mechanism sasl.mechanisms sasl.jaas.config "
        "sasl.login.callback.handler.class sasl.oauthbearer.method",
        "username": "sasl.username",
        "password": "sasl.password",
        "token_endpoint": "sasl.oauthbearer.token.endpoint.url",
        "client_id": "sasl.oauthbearer.client.id sasl.oauthbearer.client.credentials.client.id",
        "client_secret": "sasl.oauthbearer.client.secret "
        "sasl.oauthbearer.client.credentials.client.secret",
        "scope": "sasl.oauthbearer.scope",
        "extensions": "sasl.oauthbearer.extensions",
        "ca_file": "ssl.ca.location ssl.ca.pem ssl.truststore.location "
        "ssl.truststore.certificates ssl.truststore.type ssl.truststore.password "
        "enable.ssl.certificate.verification",
        "certificate_file": "ssl.certificate.location ssl.certificate.pem ssl.keystore.location "
        "ssl.keystore.certificate.chain ssl.keystore.type",
        "key_file": "ssl.key.location ssl.key.pem ssl.keystore.key",
        "key_password": "ssl.key.password ssl.keystore.password",
        "verify_hostname": "ssl.endpoint.identification.algorithm",
    }
)

_TO_LIBRDKAFKA = {
    "buffer.memory": "queue.buffering.max.kbytes",
    "max.request.size": "message.max.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "default.api.timeout.ms": "socket.timeout.ms",
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
}
_TO_JAVA = {
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.timeout.ms": "request.timeout.ms",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
}


def setting_refusal(role: Role, name: str) -> str | None:
    """Why a role's block may not hold a setting: the end of a sentence that starts with its key.

    None if it may. Values are neither checked nor quoted.
    """
    client, known = ROLES[role]
    if name in known:
        return None
    if reason := _OWNED.get(name):
        return f"is mirrorlake's own to set: {reason}"
    if key := _SECURITY.get(name):
        return f"belongs into the security block, as {key}"
    same = (_TO_JAVA if role == "consumer" else _TO_LIBRDKAFKA).get(name)
    if same in known:
        return f"is not a setting of {client}; it says {same}"
    suggestion = nearest(name, known)
    return f"is not a setting of {client}" + (suggestion if "did you mean" in suggestion else "")
