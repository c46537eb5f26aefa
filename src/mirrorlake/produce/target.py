"""How the producers of a flow reach its target."""

from dataclasses import dataclass

from mirrorlake.kafka.client_settings import Settings
from mirrorlake.produce.provenance import Provenance

#: Our defaults where librdkafka's are for small producers; a `producer` block overrides them.
PRODUCER_SETTINGS: Settings = {
    "acks": "all",
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 1_048_576,
    # the most that librdkafka takes: the broker decides what is too large
    "message.max.bytes": 1_000_000_000,
    "transaction.timeout.ms": 60_000,
}


@dataclass(frozen=True)
class Target:
    """How a shard reaches its target: rendered librdkafka settings and its names there. `mark` is a
    header of each of the flow's records, `fencing_token` the newest one at planning."""

    client: Settings
    producer: Settings
    group_id: str
    transactional_id: str
    transactional: bool
    provenance: Provenance | None = None
    mark: tuple[str, bytes] | None = None
    fencing_token: int = 0
