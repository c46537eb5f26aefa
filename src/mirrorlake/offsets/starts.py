"""From which offsets flows mirror what was there at their first start (`start`). Pure.

A start is an offset in one generation of a partition. It was noted in the lake before the flow did
anything, and so does not change; a topic or partition that came later is mirrored as a whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from mirrorlake.offsets.generations import FIRST, TargetGeneration
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.progress import Floor

Starts = Mapping[PartitionGeneration, int]
"""The first source offset that a flow mirrors. What has none is mirrored as a whole."""


def floors_from(
    floors: Mapping[TopicAndPartition, Floor],
    starts: Starts,
    remote_topic: Callable[[str], str | None],
    targets: Mapping[str, TargetGeneration],
) -> dict[TopicAndPartition, Floor]:
    """Where a flow goes on: behind its map, and nowhere below its starts."""
    raised = dict(floors)
    for (topic, partition, generation), first in starts.items():
        key, name = (topic, partition), remote_topic(topic)
        known = raised.get(key)
        if known is not None and known.generation == generation:
            raised[key] = replace(known, reached=max(known.reached, first))
        elif known is None and name is not None:
            raised[key] = Floor(0, None, generation, targets.get(name, FIRST).number, first)
    return raised


def landing_begins(
    noted: Mapping[str, Starts],
    selects: Mapping[str, Callable[[str], bool]],
    generation: Callable[[TopicAndPartition], int],
) -> dict[TopicAndPartition, int]:
    """Where landing begins in partitions without staged records: at the lowest start of the flows
    that mirror them. Partitions that some flow mirrors as a whole are missing.

    Args:
        noted: the starts of each flow that has some.
        selects: for each flow that reads from the source, which topics it mirrors.
        generation: the generation in which a partition is landed now.
    """
    places = {place for starts in noted.values() for place in starts}
    begins = {}
    for place in places:
        key = (place.topic, place.partition)
        if place.generation == generation(key):
            wanted = [
                noted.get(flow, {}).get(place, 0)
                for flow, selected in selects.items()
                if selected(place.topic)
            ]
            if min(wanted, default=0) > 0:
                begins[key] = min(wanted)
    return begins
