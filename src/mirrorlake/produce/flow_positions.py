"""What a transaction commits beside its records: the flow's position on each target partition, with
metadata that names what was written since the map was last appended to (`offsets.runs.Written`)."""

from collections.abc import Mapping, Sequence

from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.runs import Segment, Written, add_written, encode_metadata
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.delivery import Chunk

#: Kafka's default for `offset.metadata.max.bytes`, less some room.
METADATA_BYTES = 4_000
#: Positions at the target by (topic, partition): the next source offset, and its metadata.
PositionsBehind = Mapping[TopicAndPartition, tuple[int, str]]


class MetadataFull(Exception):
    """What was written since the last append to the map no longer fits into the metadata."""


def metadata_of(plan: PartitionPlan, written: Sequence[Written]) -> str:
    """The metadata of a position. Raises MetadataFull."""
    text = encode_metadata(plan.metadata(written))
    if len(text) > METADATA_BYTES:
        raise MetadataFull
    return text


def positions_behind(
    done: Sequence[tuple[Chunk, list[Segment]]],
    written: Mapping[TopicAndPartition, Sequence[Written]],
) -> PositionsBehind:
    """The positions after written chunks; `written` is what each (source topic, partition) had in
    its metadata before. Raises MetadataFull."""
    ends: dict[TopicAndPartition, tuple[Chunk, list[Written]]] = {}
    for chunk, segments in done:
        key = chunk.plan.key
        known = ends[key][1] if key in ends else list(written.get(key, ()))
        ends[key] = (chunk, add_written(known, segments))
    return {
        chunk.plan.target_key: (int(chunk.offsets[-1]) + 1, metadata_of(chunk.plan, written_now))
        for chunk, written_now in ends.values()
    }
