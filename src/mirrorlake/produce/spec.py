"""The specification of a flow to produce, and how its producers reach the target."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mirrorlake.errors import MapBehind, TargetRefused
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.offsets.generations import SourceGenerations, TargetGeneration
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.offsets.starts import Starts
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


@dataclass(frozen=True)
class FlowSpec:
    """One flow. `client` and `producer` are rendered librdkafka settings with secrets;
    `name_at_target` is the group of its positions, and the prefix of its transactional ids.

    `remote_topic` gives None for a topic that is not to be produced (not selected, paused, refused
    by its name). `blocked` are partitions that wait for an operator, `stopped` generations of
    partitions that one has stopped, and `skipped` offsets that one gave up. For those in
    `known_foreign` an operator decided, when the flow was at this source offset, that what lies in
    the target behind the map's end is not the flow's. `targets` are the living generations of
    target topics. `mark` is a header that each of its staged records has: a record at the target
    without it is another's. With `parks`, and in the offsets of `park_at`, the flow goes on behind
    single records that the target refuses; `on_parked` gets their partitions. Partitions in `whole`
    have a map behind the target: all offsets up to the target's go into one batch, once they are
    staged. Those in `again` are produced again from the end of the map on, since it is not known
    where the target has their records, below this offset. `forgotten` are offsets that `forget`
    noted. `starts` are the first offsets to mirror of what was there before the flow. `counted`:
    the workers read all that the stage holds of a range, not a selection. `generations` reads all
    that the source's topics have had.
    """

    name: str
    source_cluster: str
    name_at_target: str
    remote_topic: Callable[[str], str | None]
    client: Settings = field(repr=False)
    producer: Settings = field(repr=False)
    produce_tasks: int
    transactional: bool
    max_records: int = 2_000_000
    reader: str = "auto"
    left_out: tuple[str, ...] = ()
    blocked: frozenset[TopicAndPartition] = frozenset()
    stopped: frozenset[PartitionGeneration] = frozenset()
    skipped: Mapping[PartitionGeneration, OffsetRanges] = field(default_factory=dict)
    whole: Mapping[PartitionGeneration, MapBehind] = field(default_factory=dict)
    again: Mapping[PartitionGeneration, int] = field(default_factory=dict)
    known_foreign: Mapping[PartitionGeneration, int] = field(default_factory=dict)
    targets: Mapping[str, TargetGeneration] = field(default_factory=dict)
    provenance: Provenance | None = None
    on_refused: Callable[[Sequence[TargetRefused]], None] | None = None
    forgotten: Mapping[PartitionGeneration, OffsetRanges] = field(default_factory=dict)
    parks: bool = False
    park_at: Mapping[PartitionGeneration, OffsetRanges] = field(default_factory=dict)
    on_parked: Callable[[Sequence[PartitionGeneration]], None] | None = None
    mark: tuple[str, bytes] | None = None
    starts: Starts = field(default_factory=dict)
    counted: bool = True
    generations: Callable[[], SourceGenerations] = SourceGenerations
