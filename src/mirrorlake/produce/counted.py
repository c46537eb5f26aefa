"""Counts what a reader of the stage gives against the plan: a position moves only behind read
records, while an early end, or what is left out, would look like gaps."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from mirrorlake.errors import CountDiffers
from mirrorlake.offsets import spans
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.ranges import are_in, merged
from mirrorlake.offsets.spans import CountError, Tally
from mirrorlake.produce.batch import PartitionPlan

#: By source partition: ranges of offsets, first and last inclusive.
Skipped = Mapping[TopicAndPartition, tuple[tuple[int, int], ...]]
#: Rows of a shard, each batch with the plan of its partition.
PlannedRows = Iterator[tuple[PartitionPlan, pa.RecordBatch]]


def without_skipped(rows: PlannedRows, skipped: Skipped) -> PlannedRows:
    """Leave out records that the target refuses: an operator gave them up (`mirrorlake resolve
    --choice skip`), or they are parked (`produce/parking.py`). They stay in the stage and get no
    row in the map."""
    wanted_not = {key: merged(ranges) for key, ranges in skipped.items() if ranges}
    for plan, chunk in rows:
        if ranges := wanted_not.get(plan.key):
            offsets = chunk.column("offset").to_numpy(zero_copy_only=False)
            chunk = chunk.filter(pa.array(~are_in(ranges, offsets)))
        if chunk.num_rows:
            yield plan, chunk


def counted(rows: PlannedRows, plans: Sequence[PartitionPlan], skipped: Skipped) -> PlannedRows:
    """Pass on rows, in chunks whose offsets rise, of partitions as planned. Raises CountDiffers if
    a partition has more or fewer than its plan says; `skipped` records may be there or not."""
    tallies = {
        plan.key: Tally(plan.spans, skipped.get(plan.key, ()))
        for plan in plans
        if plan.spans is not None
    }
    for plan, chunk in rows:
        tally = tallies.get(plan.key)
        if tally is not None:
            try:
                tally.take(chunk.column("offset").to_numpy(zero_copy_only=False))
            except CountError as error:
                raise _count_differs(plan, error) from error
        yield plan, chunk
    for plan in plans:
        if plan.spans is not None:
            try:
                tallies[plan.key].end()
            except CountError as error:
                raise _count_differs(plan, error) from error


def check_unread(plans: Sequence[PartitionPlan], skipped: Skipped) -> None:
    """Check that partitions without rows read have none. Raises CountDiffers."""
    for _ in counted(iter(()), plans, skipped):
        pass


#: Offsets of a partition, first and last inclusive.
Stretch = tuple[PartitionGeneration, int, int]


def narrowed(
    plans: Sequence[PartitionPlan], count: Callable[[Sequence[Stretch]], Sequence[int]]
) -> list[PartitionPlan]:
    """Plans whose spans end where they do; `count` returns how many records some offsets have.

    A record that was not counted outside is expected within the plan. So a record that a reader
    leaves out is missed, on whichever side of a cut it is.
    """
    asked = [(plan.place, *ends) for plan in plans for ends in plan.outside]
    counts = iter(count(asked) if asked else ())
    return [
        replace(
            plan,
            spans=spans.narrowed(
                plan.spans, plan.first, plan.last, [next(counts) for _ in plan.outside]
            ),
        )
        if plan.spans and plan.outside
        else plan
        for plan in plans
    ]


def _count_differs(plan: PartitionPlan, error: CountError) -> CountDiffers:
    return CountDiffers(
        f"{plan.topic}-{plan.partition} was not read as it was planned, from offset "
        f"{plan.first} to {plan.last}: {error}; nothing behind them is taken for produced, and "
        "it is read again",
        topic=plan.topic,
        partition=plan.partition,
        first_offset=error.first,
        last_offset=error.last,
    )
