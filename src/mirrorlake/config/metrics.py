"""The blocks `metrics` (docs/metrics.md) and `tracking` (docs/tracking.md) of a topology file."""

from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from mirrorlake.config.fields import Model

#: The path of a collector's endpoint for metrics by OTLP over HTTP.
_PATH = "/v1/metrics"


def _alone(name: str) -> Any:
    """Allow a model to be written as the text of this one field."""
    return model_validator(mode="before")(
        lambda cls, value: {name: value} if isinstance(value, str) else value
    )


class Otlp(Model):
    """Metrics are sent to an OpenTelemetry collector at `endpoint` every `interval_seconds`. `otlp:
    URL` sets the endpoint alone; without a path it gets OTLP's default one."""

    endpoint: str
    interval_seconds: float = Field(default=15.0, ge=1, le=3600)

    _endpoint_alone = _alone("endpoint")

    @field_validator("endpoint")
    @classmethod
    def _is_a_url(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                "is no address of a collector that takes OTLP over HTTP; write "
                "http://HOST:4318, or https://…"
            )
        return value.rstrip("/") + _PATH if parts.path in ("", "/") else value


class Metrics(Model):
    """Metrics are served at `address` (HOST:PORT) and sent by `otlp`, if given. A metric has at
    most `max_series` series of partitions; beyond that they are summed by topic, then by flow.
    `metrics: HOST:PORT` sets the address alone."""

    address: str | None = None
    otlp: Otlp | None = None
    max_series: int = Field(default=1000, ge=1)

    _address_alone = _alone("address")

    @field_validator("address")
    @classmethod
    def _has_port(cls, value: str | None) -> str | None:
        if value is not None:
            split_address(value)
        return value


def split_address(address: str) -> tuple[str, int]:
    """Host and port of HOST:PORT; an empty host means all addresses. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError("is no address to serve metrics at; write HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


class Tracking(Model):
    """Every `run`, `bench`, `failover` and `failback` is recorded in an MLflow experiment, unless
    `enabled` is false.

    `uri` is MLflow's tracking URI and may hold references. The default is MLFLOW_TRACKING_URI, then
    the workspace on Databricks, then a SQLite store in the lake's directory.
    """

    enabled: bool = True
    uri: str | None = None
    experiment: str = "mirrorlake"
