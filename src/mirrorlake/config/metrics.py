"""The `metrics` block of a topology file: what a run serves for Prometheus, and sends by OTLP
(docs/metrics.md)."""

from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from mirrorlake.config.fields import Model

#: Where a collector takes metrics by OTLP over HTTP, below its address.
_PATH = "/v1/metrics"


def _alone(name: str) -> Any:
    """A model may be written as the text of one of its fields."""
    return model_validator(mode="before")(
        lambda cls, value: {name: value} if isinstance(value, str) else value
    )


class Otlp(Model):
    """Sent to an OpenTelemetry collector at `endpoint` every `interval_seconds`. `otlp: URL` is the
    endpoint alone; one without a path gets OTLP's own."""

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
    """Served at `address`, HOST:PORT, where there is one, and sent by `otlp`, where that is given.
    A metric has at most `max_series` series of partitions; what is beyond is added up by topic,
    then by flow. `metrics: HOST:PORT` is the address alone."""

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
    """Host and port of HOST:PORT; no host is every address of this machine. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError("is no address to serve metrics at; write HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
