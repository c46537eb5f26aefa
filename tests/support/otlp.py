"""An OpenTelemetry collector of the tests': takes metrics by OTLP over HTTP, and keeps them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

#: The value of one series: its number, or its count, sum and buckets.
Value = float | tuple[int, float, tuple[int, ...]]


@dataclass
class Collector:
    """What has come: requests as decoded, their paths and headers. `status` is what the next ones
    are answered."""

    port: int
    status: int = 200
    requests: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        """The address, as a topology file has it."""
        return f"http://127.0.0.1:{self.port}"

    def resource(self) -> dict[str, str]:
        """Who has sent the newest request."""
        (one,) = self.requests[-1].resource_metrics
        return {each.key: each.value.string_value for each in one.resource.attributes}

    def metrics(self) -> dict[str, Any]:
        """The newest request's metrics by name."""
        (one,) = self.requests[-1].resource_metrics
        (scope,) = one.scope_metrics
        return {metric.name: metric for metric in scope.metrics}

    def series(self, name: str, *labels: str) -> dict[tuple[str, ...], Value]:
        """The newest values of a metric, by these labels; {} of one that has none."""
        metric = self.metrics().get(name)
        if metric is None:
            return {}
        points = getattr(metric, metric.WhichOneof("data")).data_points
        values: dict[tuple[str, ...], Value] = {}
        for point in points:
            at = {each.key: each.value.string_value for each in point.attributes}
            values[tuple(at[label] for label in labels)] = _value(point)
        return values


def _value(point: Any) -> Value:
    if hasattr(point, "bucket_counts"):
        return point.count, point.sum, tuple(point.bucket_counts)
    number: float = getattr(point, point.WhichOneof("value"))
    return number


@contextmanager
def collector() -> Iterator[Collector]:
    """One that listens on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if known.status == 200:
                known.paths.append(self.path)
                known.headers.append(dict(self.headers))
                known.requests.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(known.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known = Collector(server.server_address[1])
    thread = Thread(target=server.serve_forever, args=[0.05], daemon=True)
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
