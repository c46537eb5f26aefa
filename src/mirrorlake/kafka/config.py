"""Client settings of a cluster: one `security` block rendered for librdkafka and for Spark's JVM
client (docs/security.md).

Pure functions. What they return holds secrets in plain text, and says so in its own repr: hand it
to a client, never log or store it.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from mirrorlake.config.client_settings import JAVA_CONSUMER, LIBRDKAFKA, Role
from mirrorlake.config.security import Security
from mirrorlake.config.topology import Cluster
from mirrorlake.errors import TopologyError
from mirrorlake.kafka.client_settings import ClientSettings, Value

Resolve = Callable[[str], str]
ReadFile = Callable[[str], str]

_OAUTH = "org.apache.kafka.common.security.oauthbearer."
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_OAUTH}OAuthBearerLoginModule",
}
#: The object identifier 1.2.840.113549.1.5.13, as it stands in an encrypted key.
_PBES2 = bytes.fromhex("06092a864886f70d01050d")


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def librdkafka_config(
    alias: str, cluster: Cluster, role: Role, resolve: Resolve, read_file: ReadFile = _read
) -> ClientSettings[Value]:
    """Give the librdkafka settings of one client of a cluster; the cluster's overrides for the role
    win.

    `resolve` turns references into values and raises TopologyError for those that have none. PEM
    files become text, so that executors need no file. A librdkafka consumer gets those of the
    `consumer` block that both clients know. Raises TopologyError for an override that is refused,
    and for a PEM file that cannot be read.
    """
    config = ClientSettings[Value]()
    config["bootstrap.servers"] = resolve(cluster.bootstrap_servers)
    config["client.id"] = f"mirrorlake-{alias}-{role}"
    # As much as one answer may hold: a record larger than 100 MB comes in one.
    config["receive.message.max.bytes"] = 2_000_000_000
    config["log_level"] = (
        2  # it would log each retry, forever; what fails for good arrives as an error
    )
    if cluster.security is not None:
        config.update(
            _librdkafka_security(
                cluster.security, resolve, partial(_pem, alias, resolve, read_file)
            )
        )
    overrides = _overrides(getattr(cluster, role), resolve)
    config.update(
        {name: value for name, value in overrides.items() if role != "consumer" or name in _BOTH}
    )
    return config


#: What the `consumer` block may hold and a librdkafka consumer knows as well, with the same
#: meaning.
_BOTH = (JAVA_CONSUMER & LIBRDKAFKA) - {"ssl.cipher.suites"} | {
    "check.crcs",
    "fetch.max.bytes",
    "fetch.min.bytes",
    "heartbeat.interval.ms",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "session.timeout.ms",
}


def spark_options(
    alias: str, cluster: Cluster, resolve: Resolve, shaded: bool, read_file: ReadFile = _read
) -> ClientSettings[str]:
    """Give the options of Spark's Kafka source for a cluster, all of them `kafka.*`; `consumer`
    overrides win.

    `shaded` is True where the JVM client is shaded (Databricks), which moves Kafka's classes. PEM
    files become text (KIP-651), so that executors need no file. Raises TopologyError if one cannot
    be read, for a key that Java's client cannot use, and for an override that is refused.
    """
    options: dict[str, str] = {"bootstrap.servers": resolve(cluster.bootstrap_servers)}
    if cluster.security is not None:
        security = cluster.security
        options["security.protocol"] = security.protocol
        options.update(_jvm_sasl(security, resolve, "kafkashaded." if shaded else ""))
        options.update(_jvm_tls(alias, security, resolve, partial(_pem, alias, resolve, read_file)))
    options.update(
        {name: _jvm_text(value) for name, value in _overrides(cluster.consumer, resolve).items()}
    )
    return ClientSettings({f"kafka.{name}": value for name, value in options.items()})


def _overrides(settings: Mapping[str, Value], resolve: Resolve) -> dict[str, Value]:
    return {
        name: resolve(value) if isinstance(value, str) else value
        for name, value in settings.items()
    }


def _jvm_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


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


def _jvm_sasl(security: Security, resolve: Resolve, prefix: str) -> dict[str, str]:
    """The JVM's login: a JAAS line, and for tokens the handler that asks the endpoint (KIP-768)."""
    if security.mechanism is None:
        return {}
    options: dict[str, str] = {"sasl.mechanism": security.mechanism}
    if security.mechanism == "OAUTHBEARER":
        options["sasl.login.callback.handler.class"] = (
            f"{prefix}{_OAUTH}OAuthBearerLoginCallbackHandler"
        )
        options["sasl.oauthbearer.token.endpoint.url"] = resolve(security.token_endpoint or "")
        login = {
            "clientId": resolve(security.client_id or ""),
            "clientSecret": _secret(security.client_secret, resolve),
        }
        if security.scope:
            login["scope"] = resolve(security.scope)
        login.update(
            {f"extension_{name}": resolve(value) for name, value in security.extensions.items()}
        )
    else:
        login = {
            "username": resolve(security.username or ""),
            "password": _secret(security.password, resolve),
        }
    arguments = " ".join(f"{name}={_quoted(value)}" for name, value in login.items())
    options["sasl.jaas.config"] = (
        f"{prefix}{_LOGIN_MODULES[security.mechanism]} required {arguments};"
    )
    return options


def _quoted(value: str) -> str:
    """Quote a value for a JAAS line, which Kafka reads with Java's StreamTokenizer: backslash
    escapes as in C."""
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        value = value.replace(char, escaped)
    return f'"{value}"'


def _jvm_tls(alias: str, security: Security, resolve: Resolve, pem: Resolve) -> dict[str, str]:
    options = {}
    if security.encrypted and not security.verify_hostname:
        options["ssl.endpoint.identification.algorithm"] = ""
    if security.ca_file is not None:
        options |= {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": pem(security.ca_file),
        }
    if security.certificate_file is not None and security.key_file is not None:
        key = pem(security.key_file)
        _check_key(alias, key)
        options["ssl.keystore.type"] = "PEM"
        options["ssl.keystore.certificate.chain"] = pem(security.certificate_file)
        options["ssl.keystore.key"] = key
    if security.key_password is not None:
        options["ssl.key.password"] = _secret(security.key_password, resolve)
    return options


def _check_key(alias: str, key: str) -> None:
    """Refuse a private key that Kafka's Java client cannot read, where librdkafka can; its own
    error says nothing."""
    match = re.search(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----([^-]*)-----END", key)
    kind, body = (match[1].strip(), match[2]) if match else ("", "")
    convert = "convert it with `openssl pkcs8 -topk8"
    if kind not in ("", "ENCRYPTED"):
        raise TopologyError(
            f"key_file of cluster {alias} is a {kind} key in its old form, which Java's Kafka "
            f"client cannot read; {convert} -nocrypt`"
        )
    try:
        encrypted_by_pbes2 = kind == "ENCRYPTED" and _PBES2 in base64.b64decode(body)
    except binascii.Error:
        return  # the clients say what is wrong with it
    if encrypted_by_pbes2:
        raise TopologyError(
            f"key_file of cluster {alias} is encrypted by PBES2, which Java's Kafka client cannot "
            f"read (JDK-8231581); {convert} -v1 PBE-SHA1-3DES`, or keep it unencrypted in a secret"
        )


def _pem(alias: str, resolve: Resolve, read_file: ReadFile, text: str) -> str:
    """PEM text: as it stands, or what the file holds. Raises TopologyError."""
    value = resolve(text)
    if value.lstrip().startswith("-----BEGIN"):
        return value
    try:
        return read_file(value)
    except (OSError, UnicodeDecodeError, ValueError):
        # The text as it was written: what a reference stands for may be half a key.
        raise TopologyError(f"{text}, a PEM file of cluster {alias}, cannot be read") from None
