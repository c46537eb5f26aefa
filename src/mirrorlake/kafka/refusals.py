"""Refusals by a cluster, or TLS, in words that a person can act on, without librdkafka's wrapping.

The only place that parses librdkafka's texts: errors of TLS or a token endpoint have no code of
their own. They are all _SSL, _AUTHENTICATION, or, if a broker ends the connection with an alert,
_TRANSPORT like any silence.
"""

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import KafkaError

from mirrorlake.errors import AuthenticationFailed, ClusterUnreachable
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.native.silence import ClusterSilent

_WHERE = re.compile(r"^\w+://[^ ]+/\w+: ")
_WHEN = re.compile(r" \(after \d+ms in state \w+(, \d+ identical error\(s\) suppressed)?\)")
_PROBE_SECONDS = 3.0


def reason_of(error: KafkaError) -> str:
    """librdkafka's text without the address before it and the state behind it."""
    return _WHEN.sub("", _WHERE.sub("", str(error.str()))).rstrip(". ")


def not_described(where: str, why: Mapping[str, str]) -> str:
    """One sentence about topics that a cluster does not describe; `why` is not empty."""
    name = min(why)
    return f"{where} does not describe {len(why)} topics, such as {name}: {why[name]}"


def principal_of(client: Settings) -> str:
    """The principal that brokers see, as far as a client's settings show it."""
    name = client.get("sasl.username") or client.get("sasl.oauthbearer.client.id")
    if name:
        return f"principal {name}"
    by_certificate = "ssl.certificate.pem" in client
    return "the principal of certificate_file" if by_certificate else "an anonymous client"


def is_refusal(error: KafkaError) -> bool:
    """Whether an error means that a client was refused, so that a retry does not help."""
    codes = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL)
    return error.code() in codes or "SSL alert number" in str(error.str())


def is_answer(error: KafkaError) -> bool:
    """Whether a broker answered with an error, which then concerns only this request; other errors
    are librdkafka's own, usually that no broker answered."""
    return bool(error.code() > 0 or error.code() == KafkaError.UNKNOWN)


def is_about_group(error: KafkaError) -> bool:
    """Whether it was refused as a member of its group, of no concern for assigned partitions."""
    return bool(error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED)


def refusal_text(error: KafkaError, client: Settings) -> str:
    """The sentence who refused whom and why, and what to check."""
    text = reason_of(error)
    if "certificate verify failed" in text:
        return (
            f"its certificate is not trusted: {_certificate_problem(client) or text}; check ca_file"
        )
    if alert := re.search(r"alert ([a-z ]+): SSL alert number", text):
        return (
            f"it refused {principal_of(client)} (TLS: {alert[1]}); check certificate_file and "
            "key_file"
        )
    if "not valid in current SASL state" in text:
        return (
            f"it takes no login on this port ({text}); check protocol in its security block, and "
            "bootstrap_servers"
        )
    if "OAUTHBEARER token" in text:
        url = client.get("sasl.oauthbearer.token.endpoint.url")
        return (
            f"{url} gave {principal_of(client)} no token ({text}); check token_endpoint, "
            "client_id and client_secret"
        )
    return (
        f"it refused the credentials of {principal_of(client)} ({text}); check its security block"
    )


def unusable(
    alias: str, client: Settings, error: KafkaError
) -> AuthenticationFailed | ClusterUnreachable:
    """The complaint of a client whose cluster delivers nothing, as an error to raise."""
    if is_refusal(error):
        return AuthenticationFailed(
            f"cluster {alias} cannot be read: {refusal_text(error, client)}", alias=alias
        )
    return ClusterUnreachable(
        f"no broker of cluster {alias} answers ({reason_of(error)}); check that they run, and "
        "bootstrap_servers",
        alias=alias,
    )


@contextmanager
def silence_in_words(alias: str, client: Settings) -> Iterator[None]:
    """Raise ClusterUnusable if no broker of the cluster answers the reads within the block."""
    try:
        yield
    except ClusterSilent as error:
        raise unusable(alias, client, error.args[0]) from error


def _certificate_problem(client: Settings) -> str | None:
    """Why the first broker's certificate is not trusted, asked again: librdkafka does not say."""
    host, _, port = str(client["bootstrap.servers"]).split(",")[0].strip().rpartition(":")
    try:
        context = ssl.create_default_context(
            cadata=str(client["ssl.ca.pem"]) if "ssl.ca.pem" in client else None
        )
        context.check_hostname = client.get("ssl.endpoint.identification.algorithm") != "none"
        with socket.create_connection((host.strip("[]"), int(port)), _PROBE_SECONDS) as plain:
            context.wrap_socket(plain, server_hostname=host.strip("[]")).close()
    except ssl.SSLCertVerificationError as error:
        return error.verify_message.rstrip(". ")
    except (OSError, ValueError):
        return None
    return None
