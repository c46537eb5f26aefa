"""A plan's totals: topics and partitions by their fate, waiting records, and conflicts. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mirrorlake.control.topic_plan import TopicPlan
from mirrorlake.offsets.partition_ranges import PartitionRanges
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition


@dataclass(frozen=True)
class Totals:
    """The sums of one flow, or of several. Partitions are those of the source's topics; a refused
    topic has none mirrored. `offsets_at_source` counts offsets that are not landed yet, an upper
    bound of the records; `records_staged` and `bytes_staged` (keys and values) are landed, and not
    yet at the target. None means unknown."""

    topics: int = 0
    topics_to_create: int = 0
    topics_refused: int = 0
    partitions: int = 0
    partitions_to_create: int = 0
    partitions_there: int = 0
    partitions_refused: int = 0
    offsets_at_source: int | None = 0
    records_staged: int | None = 0
    bytes_staged: int | None = 0


#: For a flow with an end that could not be asked.
UNKNOWN = Totals(offsets_at_source=None, records_staged=None, bytes_staged=None)


def topic_totals(plans: Sequence[TopicPlan], there: Mapping[str, int]) -> Totals:
    """Topics and partitions of a flow; `there` has the partition counts at the target, by topic."""
    going = [plan for plan in plans if plan.action != "refuse"]
    have = {plan.topic: min(plan.partitions, there.get(plan.target_topic, 0)) for plan in going}
    return Totals(
        topics=len(plans),
        topics_to_create=sum(plan.action == "create" for plan in plans),
        topics_refused=len(plans) - len(going),
        partitions=sum(plan.partitions for plan in plans),
        partitions_to_create=sum(plan.partitions - have[plan.topic] for plan in going),
        partitions_there=sum(have.values()),
        partitions_refused=sum(plan.partitions for plan in plans if plan.action == "refuse"),
    )


def not_landed(
    starts: Mapping[TopicAndPartition, int],
    ends: Mapping[TopicAndPartition, int],
    staged: Mapping[TopicAndPartition, int],
) -> int:
    """How many offsets the source still has behind the staged ones of each partition."""
    return sum(
        max(0, end - max(starts.get(key, 0), staged.get(key, 0))) for key, end in ends.items()
    )


def added(totals: Iterable[Totals]) -> Totals:
    """The sum; a count that is unknown for one is unknown for the sum."""
    parts = list(totals)
    columns = {
        count.name: [getattr(each, count.name) for each in parts] for count in fields(Totals)
    }
    sums: dict[str, Any] = {
        name: None if None in values else sum(values) for name, values in columns.items()
    }
    return Totals(**sums)


def map_ends(rows: Iterable[Mapping[str, Any]]) -> dict[TopicAndPartition, tuple[int, int]]:
    """(generation, next source offset) behind the map of each partition, in the newest generation
    of its target topic, from rows of `mapped_ends`."""
    newest: dict[TopicAndPartition, tuple[int, int, int]] = {}
    for row in rows:
        key = row["topic"], row["partition"]
        end = row["target_generation"], row["generation"], row["source_position"]
        newest[key] = max(newest.get(key, (0, 0, 0)), end)
    return {key: (generation, end) for key, (_, generation, end) in newest.items()}


def waiting_places(
    staged: Mapping[str, Mapping[int, PartitionRanges]],
    ends: Mapping[TopicAndPartition, tuple[int, int]],
) -> tuple[list[tuple[str, int, int, int]], int]:
    """Where the staged records that lie behind the map begin (topic, partition, generation, first
    offset), and their approximate count: a share of a file's records if the map ends within it."""
    first: dict[PartitionGeneration, int] = {}
    count = 0
    for topic, partitions in staged.items():
        for partition, ranges in partitions.items():
            newest, end = ends.get((topic, partition), (0, 0))
            for one in (ranges[at] for at in range(len(ranges))):
                begin = max(one.first, end) if one.generation == newest else one.first
                if one.generation < newest or begin > one.last:
                    continue
                count += -(-one.record_count * (one.last - begin + 1) // (one.last - one.first + 1))
                key = PartitionGeneration(topic, partition, one.generation)
                first[key] = min(first.get(key, begin), begin)
    return [(*key, at) for key, at in sorted(first.items())], count
