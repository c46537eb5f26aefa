"""Client settings of a cluster: its `security` block rendered for librdkafka (docs/security.md).

Pure functions. Results hold plain secrets, which their repr hides: never log or store them.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from mirrorlake.config.client_settings import JAVA_CONSUMER, LIBRDKAFKA, Role
from mirrorlake.config.cluster import Cluster
from mirrorlake.config.security import Security, is_pem, with_line_breaks
from mirrorlake.errors import TopologyError
from mirrorlake.kafka.client_settings import ClientSettings, Value

Resolve = Callable[[str], str]
ReadFile = Callable[[str], str]


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def librdkafka_config(
    alias: str, cluster: Cluster, role: Role, resolve: Resolve, read_file: ReadFile = _read
) -> ClientSettings[Value]:
    """The librdkafka settings of a client of a cluster; the cluster's overrides for the role win.

    `resolve` replaces references by values and raises TopologyError for those without one. PEM
    files become text, so executors need no file. The `consumer` block uses the names of Kafka's
    Java consumer; librdkafka's gets those that it has too. Raises TopologyError for a refused
    override, and for a PEM file that cannot be read.
    """
    config = ClientSettings[Value]()
    config["bootstrap.servers"] = resolve(cluster.bootstrap_servers)
    config["client.id"] = f"mirrorlake-{alias}-{role}"
    # The most that one answer may hold: a record larger than 100 MB comes in one.
    config["receive.message.max.bytes"] = 2_000_000_000
    config["log_level"] = 2  # else it logs each retry; final failures arrive as errors
    if cluster.security is not None:
        pem = partial(_pem, alias, resolve, read_file)
        config.update(_librdkafka_security(cluster.security, resolve, pem))
    overrides: dict[str, Value] = {
        name: resolve(value) if isinstance(value, str) else value
        for name, value in getattr(cluster, role).items()
    }
    names = {name: name for name in overrides} if role != "consumer" else OF_JAVA
    config.update({names[name]: value for name, value in overrides.items() if name in names})
    return config


_SAME_NAME = (JAVA_CONSUMER & LIBRDKAFKA) - {"ssl.cipher.suites"} | {
    *("check.crcs", "fetch.max.bytes", "fetch.min.bytes", "max.partition.fetch.bytes"),
    *("heartbeat.interval.ms", "max.poll.interval.ms", "session.timeout.ms"),
}
#: Keys of the `consumer` block that librdkafka has with the same meaning: its name there.
OF_JAVA: Mapping[str, str] = {
    **{name: name for name in _SAME_NAME},
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}


def _secret(value: SecretStr | None, resolve: Resolve) -> str:
    return "" if value is None else resolve(value.get_secret_value())


def _librdkafka_security(security: Security, resolve: Resolve, pem: Resolve) -> dict[str, str]:
    config: dict[str, str] = {"security.protocol": security.protocol}
    if security.mechanism == "OAUTHBEARER":
        config.update(_librdkafka_token(security, resolve))
    elif security.mechanism:
        config["sasl.mechanism"] = security.mechanism
        config["sasl.username"] = resolve(security.username or "")
        config["sasl.password"] = _secret(security.password, resolve)
    files = {
        "ca": security.ca_file,
        "certificate": security.certificate_file,
        "key": security.key_file,
    }
    config.update(
        {f"ssl.{name}.pem": pem(value) for name, value in files.items() if value is not None}
    )
    if security.key_password is not None:
        config["ssl.key.password"] = _secret(security.key_password, resolve)
    if security.encrypted and not security.verify_hostname:
        config["ssl.endpoint.identification.algorithm"] = "none"
    return config


def _librdkafka_token(security: Security, resolve: Resolve) -> dict[str, str]:
    config = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": resolve(security.token_endpoint or ""),
        "sasl.oauthbearer.client.id": resolve(security.client_id or ""),
        "sasl.oauthbearer.client.secret": _secret(security.client_secret, resolve),
    }
    if security.scope:
        config["sasl.oauthbearer.scope"] = resolve(security.scope)
    if security.extensions:
        pairs = (f"{name}={resolve(value)}" for name, value in security.extensions.items())
        config["sasl.oauthbearer.extensions"] = ",".join(pairs)
    return config


def _pem(alias: str, resolve: Resolve, read_file: ReadFile, text: str) -> str:
    """PEM text: given as such, or the content of a file. Raises TopologyError."""
    value = resolve(text)
    if is_pem(value):
        return with_line_breaks(value)
    try:
        return read_file(value)
    except (OSError, UnicodeDecodeError, ValueError):
        # Name the text as written: a reference's value may be half a key.
        raise TopologyError(f"{text}, a PEM file of cluster {alias}, cannot be read") from None
