"""An OpenTelemetry collector of the tests': takes metrics by OTLP over HTTP, and keeps them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.support.http_server import HttpAnswer, HttpRequest, http_server

#: The value of one series: its number, or its count, sum and buckets.
Value = float | tuple[int, float, tuple[int, ...]]


@dataclass
class Collector:
    """What has come: requests as decoded, their paths and headers. `status` is what the next ones
    are answered; `endpoint` is the address, as a topology file has it."""

    endpoint: str = ""
    status: int = 200
    requests: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def answer(self, request: HttpRequest) -> HttpAnswer:
        """Keep what came, unless it is refused."""
        if self.status == 200:
            self.paths.append(request.path)
            self.headers.append(dict(request.headers))
            self.requests.append(ExportMetricsServiceRequest.FromString(request.body))
        return HttpAnswer(self.status)

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
    known = Collector()
    with http_server(known.answer) as known.endpoint:
        yield known
