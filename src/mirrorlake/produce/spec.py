"""What producing a flow needs to know."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mirrorlake.errors import MapBehind, TargetRefused
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.offsets.generations import SourceGenerations, TargetGeneration
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.offsets.starts import Starts
from mirrorlake.produce.provenance import Provenance


@dataclass(frozen=True)
class FlowSpec:
    """One flow. `client` and `producer` are rendered librdkafka settings with secrets;
    `name_at_target` is the group of its positions, and what its transactional ids begin with.

    `remote_topic` gives None for a topic that is not to be produced (not selected, paused, refused
    by its name). `blocked` are partitions that wait for an operator, `stopped` generations of
    partitions that one has stopped, and `skipped` offsets that one gave up. For those in
    `known_foreign` an operator decided that what lies in the target behind the map's end is not the
    flow's, when the flow went on at this source offset. `targets` are the living generations of
    target topics. `mark` is a header that each of its records has when it comes from the stage:
    what is without it at the target is another's. With `parks`, and in the offsets of `park_at`, it
    goes on behind single records that the target refuses; `on_parked` hears in which partitions.
    Of those in `whole` the map is behind the target: all up to where that is goes into one batch,
    once it is staged. Those in `again` are produced again from the end of the map on, since where
    the target has them, below this offset, is not known. `forgotten` are offsets that `forget`
    noted. `starts` are the first offsets that it mirrors of what was there before it. `counted`:
    the workers read all that the stage holds of a range, and not a selection. `generations` reads
    all that the source's topics have had.
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
