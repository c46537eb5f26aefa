"""Where a flow is after one look at its stage."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirrorlake.offsets.positions import TopicAndPartition


@dataclass(frozen=True)
class Snapshot:
    """Where a flow was after one look: what was landed before it, whether that was all produced, where it goes on,
    where the map of what it has produced ends (rows of it may still be on their way), the partitions that wait for an
    operator, the topics that were left out at that look, and the generations of target topics that it produced to."""

    covered: dict[TopicAndPartition, int]
    caught_up: bool
    floors: dict[TopicAndPartition, int]
    mapped: dict[TopicAndPartition, int]
    held: frozenset[TopicAndPartition]
    left_out: frozenset[str]
    target_generations: Mapping[str, int] = field(default_factory=dict)
