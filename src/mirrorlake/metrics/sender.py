"""Sends the metrics of a run to an OpenTelemetry collector, by OTLP over HTTP.

Metrics, names and values are those of `/metrics`; only the format differs. Logins and certificates
come from OpenTelemetry's own environment variables, which its exporter reads:
https://opentelemetry.io/docs/specs/otel/protocol/exporter/
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import getpid
from socket import gethostname
from threading import Event, Thread
from time import time_ns
from typing import Any

from mirrorlake import __version__
from mirrorlake.config.metrics import Otlp
from mirrorlake.extras import needs
from mirrorlake.metrics.facts import Facts
from mirrorlake.metrics.histogram import BOUNDS, Histogram
from mirrorlake.metrics.model import Family, families

logger = logging.getLogger(__name__)

#: OpenTelemetry's unit (UCUM) by the suffix of a metric's name.
_UNITS = {"seconds": "s", "bytes": "By"}


@contextmanager
def sending(otlp: Otlp, facts: Callable[[], Facts], bound: int) -> Iterator[None]:
    """While the block runs, and once at its end, send what `facts` returns, at most `bound` series
    of a metric. A failure is logged and not retried: the next one has newer values.

    Raises MissingExtra without OpenTelemetry's exporter.
    """
    with needs("otlp"):
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    sender = _Sender(otlp.endpoint, OTLPMetricExporter(endpoint=otlp.endpoint), facts, bound)
    ended = Event()

    def send_at_times() -> None:
        while not ended.wait(otlp.interval_seconds):
            sender.send()

    thread = Thread(target=send_at_times, name="metrics by OTLP", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        sender.end(thread)


class _Sender:
    """Sends through an exporter. Counters start with this object: the process counts from then."""

    def __init__(
        self, endpoint: str, exporter: Any, facts: Callable[[], Facts], bound: int
    ) -> None:
        self._endpoint, self._exporter = endpoint, exporter
        self._facts, self._bound = facts, bound
        self._since, self._resource = time_ns(), _resource()
        self._fails = False
        self._warnings = _KeptWarnings()
        logging.getLogger(type(exporter).__module__).addFilter(self._warnings)

    def send(self) -> None:
        """Send the current values."""
        self._warnings.lines.clear()
        try:
            data = _exported(self._resource, self._known(), self._since)
            sent = self._exporter.export(data).name == "SUCCESS"
        except Exception:
            logger.exception("metrics could not be sent to %s", self._endpoint)
            return
        if not sent and not self._fails:
            why = next(iter(self._warnings.lines), "it does not say why")
            logger.warning("metrics could not be sent to %s: %s", self._endpoint, why)
        if sent and self._fails:
            logger.warning("metrics are sent to %s again", self._endpoint)
        self._fails = not sent

    def end(self, thread: Thread) -> None:
        """Send the last values, unless the last attempt failed: a collector that is away must not
        delay the end. `thread` is the one that has been sending."""
        if not self._fails:
            thread.join()
        if not self._fails:
            self.send()
        self._exporter.shutdown()
        thread.join(1.0)
        logging.getLogger(type(self._exporter).__module__).removeFilter(self._warnings)

    def _known(self) -> list[Family]:
        return [one for one in families(self._facts(), self._bound) if one.series]


class _KeptWarnings(logging.Filter):
    """Captures what the exporter logs: several lines per failure, the first with the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Capture a line, or the root cause of an error in it, and suppress it."""
        given = record.args if isinstance(record.args, tuple) else ()
        errors = [value for value in given if isinstance(value, BaseException)]
        self.lines.append(str(_first_cause(errors[0])) if errors else record.getMessage())
        return False


def _first_cause(error: BaseException) -> BaseException:
    while error.__context__ is not None:
        error = error.__context__
    return error


def _resource() -> Any:
    """The sender's identity; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    own = {
        "service.name": "mirrorlake",
        "service.version": __version__,
        "service.instance.id": f"{gethostname()}-{getpid()}",
    }
    return Resource(own).merge(OTELResourceDetector().detect())


def _exported(resource: Any, known: list[Family], since: int) -> Any:
    """Metrics in the form of OpenTelemetry's exporter; `since` is nanoseconds since 1970."""
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    now = time_ns()
    metrics = [_metric(family, since, now) for family in known]
    scope = ScopeMetrics(InstrumentationScope("mirrorlake", __version__), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, since: int, now: int) -> Any:
    from opentelemetry.sdk.metrics import export as otlp

    metric = family.metric
    points: list[Any] = []
    for labels, value in family.series.items():
        attributes = dict(zip(metric.labels, labels, strict=True))
        if isinstance(value, Histogram):
            points.append(_histogram_point(attributes, value, since, now))
        else:
            points.append(otlp.NumberDataPoint(attributes, since, now, value))
    cumulative = otlp.AggregationTemporality.CUMULATIVE
    data: Any = otlp.Gauge(points)
    if metric.kind == "counter":
        data = otlp.Sum(points, cumulative, True)
    elif metric.kind == "histogram":
        data = otlp.Histogram(points, cumulative)
    unit = _UNITS.get(metric.name.removesuffix("_total").rpartition("_")[2], "")
    return otlp.Metric(metric.name, metric.text, unit, data)


def _histogram_point(attributes: dict[str, str], value: Histogram, since: int, now: int) -> Any:
    """A histogram; its minimum and maximum are unknown and not sent."""
    from opentelemetry.sdk.metrics.export import HistogramDataPoint

    unknown: Any = None  # protobuf omits None
    return HistogramDataPoint(
        attributes,
        start_time_unix_nano=since,
        time_unix_nano=now,
        count=value.count,
        sum=value.total,
        bucket_counts=value.counts,
        explicit_bounds=BOUNDS,
        min=unknown,
        max=unknown,
    )
