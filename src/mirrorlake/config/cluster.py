"""The settings of a Kafka cluster in the topology file, including how it is landed."""

from pydantic import Field, field_validator, model_validator

from mirrorlake.config.client_settings import ROLES, setting_refusal
from mirrorlake.config.fields import Model, Override, names_of
from mirrorlake.config.security import Security

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Landing(Model):
    """How a source cluster is read into `records`: batch size in records, files per batch, trigger
    interval in milliseconds (None: depends on who commits, `landing/land.py`), and, for an object
    store with slow commits, the longest interval between small batches, ms.

    A batch of up to `small_batch_records` goes the short way: Spark's tasks only read Kafka.
    """

    max_records_per_batch: int = Field(default=4_000_000, ge=1)
    files_per_batch: int = Field(default=2, ge=1)
    trigger_ms: int | None = Field(default=None, ge=0)
    trigger_limit_ms: int = Field(default=1_000, ge=0)
    small_batch_records: int = Field(default=20_000, ge=0)


class Cluster(Model):
    """A Kafka cluster. `consumer`, `producer` and `admin` are client settings by Kafka's names."""

    bootstrap_servers: str = Field(min_length=1)
    security: Security | None = None
    consumer: Override = {}
    producer: Override = {}
    admin: Override = {}
    landing: Landing = Landing()

    @model_validator(mode="after")
    def _known_settings(self) -> "Cluster":
        for role in ROLES:
            for name in getattr(self, role):
                if reason := setting_refusal(role, name):
                    raise ValueError(f"{role}.{name} {reason}")
        return self

    @field_validator("bootstrap_servers", mode="before")
    @classmethod
    def _join(cls, value: object) -> object:
        names = names_of(value)
        return ",".join(names) if isinstance(names, tuple) else value

    @field_validator("bootstrap_servers")
    @classmethod
    def _has_ports_that_there_are(cls, value: str) -> str:
        """Refuse what librdkafka misreads: a port that is too large, modulo 65,536, and a scheme
        that is not Kafka's, as part of the host name."""
        for server in value.split(","):
            scheme, slashes, _ = server.strip().rpartition("://")
            if slashes and scheme.upper() not in _PROTOCOLS:
                raise ValueError(f"names a URL, {scheme}://…; an address of Kafka is HOST:PORT")
            _, colon, port = server.strip().rpartition(":")
            if colon and port.isdecimal() and not 0 < int(port) < 65_536:
                raise ValueError(f"names port {port} in {server.strip()}; ports go up to 65535")
        return value
