"""The checks of `mirrorlake doctor` for the `metrics` block: the address that a run serves, and the
collector that it sends metrics to."""

import socket
from collections.abc import Iterator
from importlib.util import find_spec
from socket import AI_PASSIVE, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET
from urllib.parse import urlsplit

from mirrorlake.config.metrics import Metrics, Otlp, split_address
from mirrorlake.extras import installed, missing
from mirrorlake.library.doctor import Check

#: How long a collector may take to accept a connection, seconds.
_CONNECT_SECONDS = 5.0
_PORTS = {"http": 80, "https": 443}


def metrics_checks(metrics: Metrics) -> Iterator[Check]:
    """Check that a run can listen at its metrics address, and reach its collector."""
    if metrics.address is not None:
        yield _served(metrics.address)
    if metrics.otlp is not None:
        yield _sent(metrics.otlp)


def _served(address: str) -> Check:
    subject, (host, port) = f"metrics at {address}", split_address(address)
    if not installed("metrics"):
        return Check("ports", subject, "bad", str(missing("metrics")))
    try:
        found = socket.getaddrinfo(host or None, port, type=SOCK_STREAM, flags=AI_PASSIVE)
        with socket.socket(found[0][0], SOCK_STREAM) as listener:
            listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            listener.bind(found[0][4])
    except OSError as error:
        return Check(
            "ports",
            subject,
            "note",
            f"it cannot be listened at now: {error.strerror or error}",
            "that is as it should be while a run serves there; else name another one in `metrics`",
        )
    return Check("ports", subject, "good", "free for a run to listen at")


def _sent(otlp: Otlp) -> Check:
    subject, parts = f"OTLP to {otlp.endpoint}", urlsplit(otlp.endpoint)
    if not _can_send():
        return Check("metrics", subject, "bad", str(missing("otlp")))
    try:
        place = (parts.hostname or "", parts.port or _PORTS[parts.scheme])
        socket.create_connection(place, _CONNECT_SECONDS).close()
    except OSError as error:
        return Check(
            "metrics",
            subject,
            "note",
            f"no connection: {error.strerror or error}",
            "a run goes on without it; start the collector, or change `metrics.otlp`",
        )
    return Check("metrics", subject, "good", "it takes connections; what it answers was not tried")


def _can_send() -> bool:
    """Whether the exporter is installed: MLflow brings OpenTelemetry without its exporters."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ImportError:
        return False
