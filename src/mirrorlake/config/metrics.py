"""The `metrics` block of a topology file: what a run serves for Prometheus (docs/metrics.md)."""

from typing import Any

from pydantic import Field, field_validator, model_validator

from mirrorlake.config.fields import Model


class Metrics(Model):
    """Served at `address`, HOST:PORT, where there is one. A metric has at most `max_series` series
    of partitions; what is beyond is added up by topic, then by flow. `metrics: HOST:PORT` is the
    address alone."""

    address: str | None = None
    max_series: int = Field(default=1000, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _address_alone(cls, value: Any) -> Any:
        return {"address": value} if isinstance(value, str) else value

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
