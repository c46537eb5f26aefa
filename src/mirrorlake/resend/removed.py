"""What a restore does not bring of its topics, since the stage does not hold it. Pure."""

from collections.abc import Collection, Iterable, Iterator
from operator import attrgetter

from mirrorlake.errors import some_of
from mirrorlake.lake.retention import Removal
from mirrorlake.resend.cut import StagedRanges
from mirrorlake.resend.note import ResentTopic

#: How many partitions a sentence names.
NAMED = 5


def not_in_stage(
    parts: Iterable[ResentTopic], removals: Collection[Removal], staged: StagedRanges
) -> list[str]:
    """A sentence for each topic with records in front of the restored ones: `removals` by
    `maintain`, or passed over by landing; some may be `staged` again."""
    lacking = ((part.topic, [*_lacking(part, removals, staged)]) for part in parts)
    return [
        f"{topic}: offsets {some_of(places, NAMED, ' and of {} partitions more')} are not "
        "restored: `maintain` has deleted them from the stage, or landing began behind them"
        for topic, places in lacking
        if places
    ]


def _lacking(part: ResentTopic, removals: Iterable[Removal], staged: StagedRanges) -> Iterator[str]:
    of_topic = (removal for removal in removals if removal.topic == part.topic)
    for removal in sorted(of_topic, key=attrgetter("partition", "generation")):
        own = {one.generation for one in part.ranges if one.partition == removal.partition}
        restored = own or {one.generation for one in part.ranges} or {removal.generation}
        if removal.generation not in restored:
            continue
        ranges = staged.get(part.topic, {}).get(removal.partition)
        first = None if ranges is None else ranges.first_of(removal.generation)
        below = removal.below if first is None else min(removal.below, first)
        if removal.first_offset < below:
            yield f"{removal.first_offset} to {below - 1} of partition {removal.partition}"
