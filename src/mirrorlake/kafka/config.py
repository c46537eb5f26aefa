"""Client settings of a cluster: one `security` block rendered for librdkafka and for Spark's JVM client (DESIGN 7).

Pure functions. What they return holds secrets in plain text: hand it to a client, never log or store it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import SecretStr

from mirrorlake.core.security import Security
from mirrorlake.core.topology import Cluster
from mirrorlake.errors import TopologyError

Role = Literal["consumer", "producer", "admin"]
Resolve = Callable[[str], str]

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def librdkafka_config(alias: str, cluster: Cluster, role: Role, resolve: Resolve) -> dict[str, str | int | bool]:
    """Give the librdkafka settings of one client of a cluster; the cluster's overrides for the role win.

    `resolve` turns references into values and raises TopologyError for those that have none.
    """
    config: dict[str, str | int | bool] = {
        "bootstrap.servers": resolve(cluster.bootstrap_servers),
        "client.id": f"mirrorlake-{alias}-{role}",
    }
    if cluster.security is not None:
        config.update(_librdkafka_security(cluster.security, resolve))
    return {**config, **_overrides(getattr(cluster, role), resolve)}


def spark_options(
    alias: str, cluster: Cluster, resolve: Resolve, shaded: bool, read_file: Callable[[str], str] = _read
) -> dict[str, str]:
    """Give the options of Spark's Kafka source for a cluster, all of them `kafka.*`; `consumer` overrides win.

    `shaded` is True where the JVM client is shaded (Databricks), which moves the JAAS classes. `read_file` is called
    only when a client certificate and its key are two files, since the JVM takes them from one file or as text.
    Raises TopologyError if such a file cannot be read.
    """
    options: dict[str, str] = {"bootstrap.servers": resolve(cluster.bootstrap_servers)}
    if cluster.security is not None:
        security = cluster.security
        options["security.protocol"] = security.protocol
        options.update(_jvm_sasl(security, resolve, shaded))
        options.update(_jvm_truststore(security, resolve))
        options.update(_jvm_keystore(alias, security, resolve, read_file))
    options.update({name: _jvm_text(value) for name, value in _overrides(cluster.consumer, resolve).items()})
    return {f"kafka.{name}": value for name, value in options.items()}


def _overrides(settings: Mapping[str, str | int | bool], resolve: Resolve) -> dict[str, str | int | bool]:
    return {name: resolve(value) if isinstance(value, str) else value for name, value in settings.items()}


def _jvm_text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _secret(value: SecretStr, resolve: Resolve) -> str:
    return resolve(value.get_secret_value())


def _is_pem(value: str) -> bool:
    return value.lstrip().startswith("-----BEGIN")


def _librdkafka_security(security: Security, resolve: Resolve) -> dict[str, str]:
    config: dict[str, str] = {"security.protocol": security.protocol}
    if security.mechanism and security.username is not None and security.password is not None:
        config["sasl.mechanism"] = security.mechanism
        config["sasl.username"] = resolve(security.username)
        config["sasl.password"] = _secret(security.password, resolve)
    files = {"ca": security.ca_file, "certificate": security.certificate_file, "key": security.key_file}
    for name, text in files.items():
        if text is not None:
            value = resolve(text)
            config[f"ssl.{name}.{'pem' if _is_pem(value) else 'location'}"] = value
    if security.key_password is not None:
        config["ssl.key.password"] = _secret(security.key_password, resolve)
    return config


def _jvm_sasl(security: Security, resolve: Resolve, shaded: bool) -> dict[str, str]:
    if security.mechanism is None or security.username is None or security.password is None:
        return {}
    module = ("kafkashaded." if shaded else "") + _LOGIN_MODULES[security.mechanism]
    username, password = _quoted(resolve(security.username)), _quoted(_secret(security.password, resolve))
    jaas = f"{module} required username={username} password={password};"
    return {"sasl.mechanism": security.mechanism, "sasl.jaas.config": jaas}


def _quoted(value: str) -> str:
    """Quote a value for a JAAS line, which Kafka reads with Java's StreamTokenizer: backslash escapes as in C."""
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        value = value.replace(char, escaped)
    return f'"{value}"'


def _jvm_truststore(security: Security, resolve: Resolve) -> dict[str, str]:
    if security.ca_file is None:
        return {}
    value = resolve(security.ca_file)
    name = "ssl.truststore.certificates" if _is_pem(value) else "ssl.truststore.location"
    return {"ssl.truststore.type": "PEM", name: value}


def _jvm_keystore(alias: str, security: Security, resolve: Resolve, read_file: Callable[[str], str]) -> dict[str, str]:
    """Client certificate and PKCS#8 key as the JVM takes them: one PEM file, or both as text (KIP-651)."""
    if security.certificate_file is None or security.key_file is None:
        return {}
    certificate, key = resolve(security.certificate_file), resolve(security.key_file)
    options = {"ssl.keystore.type": "PEM"}
    if certificate == key and not _is_pem(key):
        options["ssl.keystore.location"] = key
    else:
        options["ssl.keystore.certificate.chain"] = _pem_text(alias, certificate, read_file)
        options["ssl.keystore.key"] = _pem_text(alias, key, read_file)
    if security.key_password is not None:
        options["ssl.key.password"] = _secret(security.key_password, resolve)
    return options


def _pem_text(alias: str, value: str, read_file: Callable[[str], str]) -> str:
    if _is_pem(value):
        return value
    try:
        return read_file(value)
    except (OSError, UnicodeDecodeError):
        raise TopologyError(
            f"{value}, a PEM file of cluster {alias}, cannot be read", alias=alias, file=value
        ) from None
