"""Serves the metrics of a run: `/metrics` for Prometheus, `/healthz` and `/readyz` for probes.

Each request has a thread, for which the run never waits; an error is logged and answered with 500.
"""

import logging
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import TCPServer, ThreadingMixIn
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from mirrorlake.config.metrics import split_address
from mirrorlake.errors import InputError
from mirrorlake.extras import needs
from mirrorlake.metrics.facts import Facts, waits
from mirrorlake.metrics.histogram import BOUNDS, Histogram
from mirrorlake.metrics.model import Family, families

logger = logging.getLogger(__name__)

#: How long a client may take to send its request or to read the answer, seconds.
CLIENT_SECONDS = 10.0
_TEXT = "text/plain; charset=utf-8"
Answer = tuple[str, str, bytes]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False

    def server_bind(self) -> None:
        """Like `http.server`'s server, but without its lookup of the host's name in DNS."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log at debug level a client that went away or sent nothing."""
        logger.debug("a request from %s was not answered", client_address, exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = CLIENT_SECONDS

    def log_message(self, format: str, *args: Any) -> None:
        """Log requests at debug level only."""
        logger.debug(format, *args)


@contextmanager
def serving(address: str, facts: Callable[[], Facts], bound: int) -> Iterator[int]:
    """Serve what `facts` returns at each request, at most `bound` series of a metric, while the
    block runs. Yields the port; port 0 takes a free one.

    Raises InputError if it cannot listen at the address, MissingExtra without prometheus_client.
    """
    with needs("metrics"):
        import prometheus_client
    try:
        host, port = split_address(address)
    except ValueError as error:
        raise InputError(f"{address!r} {error}") from None
    server_class = _Server6 if ":" in host else _Server
    try:
        server = make_server(
            host, port, _application(facts, bound, prometheus_client), server_class, _Handler
        )
    except OSError as error:
        raise InputError(
            f"metrics cannot be served at {address} ({error.strerror or error}); choose another "
            "HOST:PORT"
        ) from error
    thread = Thread(target=server.serve_forever, args=[0.1], name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _application(facts: Callable[[], Facts], bound: int, library: Any) -> Callable[..., Any]:
    """The WSGI application."""

    def answer(path: str, accept: str) -> Answer:
        if path == "/metrics":
            registry = library.CollectorRegistry(auto_describe=False)
            library.ProcessCollector(registry=registry)
            registry.register(_Collector(facts(), bound))
            encode, kind = library.exposition.choose_encoder(accept)
            return "200 OK", kind, encode(registry)
        if path == "/healthz":
            return "200 OK", _TEXT, b"ok\n"
        if path == "/readyz":
            sentences = waits(facts())
            status = "503 Service Unavailable" if sentences else "200 OK"
            return status, _TEXT, ("\n".join(sentences or ["ready"]) + "\n").encode()
        return "404 Not Found", _TEXT, b"/metrics, /healthz, /readyz\n"

    def application(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        try:
            status, kind, body = answer(path, environ.get("HTTP_ACCEPT", ""))
        except Exception:
            logger.exception("%s could not be answered", path)
            status, kind, body = "500 Internal Server Error", _TEXT, b"the log says why\n"
        start(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body]

    return application


class _Collector:
    """Passes the metrics of one scrape to prometheus_client."""

    def __init__(self, facts: Facts, bound: int) -> None:
        self._facts, self._bound = facts, bound

    def collect(self) -> Iterator[Any]:
        """Every metric."""
        return map(_exposed, families(self._facts, self._bound))


def _exposed(family: Family) -> Any:
    """A metric in prometheus_client's form."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    metric = family.metric
    kinds = {
        "counter": CounterMetricFamily,
        "gauge": GaugeMetricFamily,
        "histogram": HistogramMetricFamily,
    }
    exposed: Any = kinds[metric.kind](metric.name, metric.text, labels=metric.labels)
    bounds = [*map(str, BOUNDS), "+Inf"]
    for labels, value in family.series.items():
        if isinstance(value, Histogram):
            buckets = list(zip(bounds, value.cumulative(), strict=True))
            exposed.add_metric(labels, buckets, value.total)
        else:
            exposed.add_metric(labels, value)
    return exposed
