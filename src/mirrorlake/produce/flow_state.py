"""The driver's memory of a flow from batch to batch, which the map and the target can restore:
where each partition goes on, and which worker wrote each shard last."""

import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from mirrorlake.errors import MapBehind
from mirrorlake.offsets.generations import GenerationIds, SourceGenerations
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.progress import NOTHING_MAPPED, Floor
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.produce.batch import BatchPlan, PartitionPlan
from mirrorlake.produce.map_writer import map_rows

_PLACE = ("topic", "partition", "generation")


class FlowState:
    """`floors` are where partitions go on, `owners` the workers that wrote each shard last, and
    `unrestored` the stopped partitions of which the target may have more than the map."""

    def __init__(
        self, floors: Mapping[TopicAndPartition, Floor], unrestored: Collection[PartitionGeneration]
    ) -> None:
        self.floors = dict(floors)
        self.owners: dict[int, str] = {}
        self.unrestored = set(unrestored)

    def begins_generation(self, plan: PartitionPlan) -> bool:
        """Whether a plan has the first records of a generation of its partition."""
        known = self.floors.get(plan.key, NOTHING_MAPPED)
        return plan.generation > known.generation

    def still(
        self, whole: Mapping[PartitionGeneration, MapBehind]
    ) -> dict[PartitionGeneration, MapBehind]:
        """Those of some partitions whose map is still behind the target."""
        floors = {place: self.floors.get(place.topic_partition, NOTHING_MAPPED) for place in whole}
        return {
            place: one
            for place, one in whole.items()
            if (floors[place].generation, floors[place].next)
            <= (place.generation, one.last_offset or 0)
        }

    def advance(self, result: pa.Table) -> None:
        """Take over rows of RESULT."""
        reported = result.select([*_PLACE, "shard", "worker", "target_generation", "reached"])
        for row in reported.to_pylist():
            self.owners[row["shard"]] = row["worker"]
            key = (row["topic"], row["partition"])
            known = self.floors.get(key, NOTHING_MAPPED).of_generation(row["generation"])
            self.floors[key] = replace(
                known,
                target_generation=row["target_generation"],
                reached=max(known.reached, row["reached"]),
            )
        rows = map_rows(result)
        # too few rows for threads
        by_partition = rows.group_by(["topic", "partition"], use_threads=False)
        ends = by_partition.aggregate([("source_last", "max"), ("target_last", "max")])
        for row in ends.to_pylist():
            key = (row["topic"], row["partition"])
            self.floors[key] = replace(
                self.floors[key],
                source=row["source_last_max"] + 1,
                target=row["target_last_max"] + 1,
            )
        for row in result.select([*_PLACE, "shard", "recovering"]).to_pylist():
            if row["recovering"]:
                # the target has more than was rebuilt: the next task asks again
                self.owners.pop(row["shard"], None)
            else:
                self.unrestored.discard(PartitionGeneration.from_row(row))

    def skip_empty(self, plan: BatchPlan, result: pa.Table) -> None:
        """Skip the ranges of shards that reported nothing: Spark runs no task if it finds no row,
        and `shard_jobs.checked_for_unread` makes sure that there is none."""
        reported = set(result["shard"].to_pylist())
        shards = [shard for shard in plan.shards if shard.shard not in reported]
        for partition in (partition for shard in shards for partition in shard.partitions):
            known = self.floors.get(partition.key, partition.floor)
            floor = known.of_generation(partition.generation)
            reached = max(floor.reached, partition.last + 1)
            self.floors[partition.key] = replace(floor, reached=reached)


class Upcoming:
    """The partitions of which the stage may hold records above a flow's progress: those that had
    some at the last plan, and those that got some since. All other partitions are fully produced,
    as long as the flow's progress does not go back."""

    def __init__(self) -> None:
        self._index: weakref.ref[StageIndex] | None = None
        self._changes = 0
        self._left: Collection[TopicAndPartition] = ()

    def among(self, index: StageIndex, cluster: str) -> Collection[TopicAndPartition] | None:
        """The partitions of a source cluster; None for all, where the index was built anew."""
        changes, self._changes = self._changes, index.changes
        if self._index is not None and self._index() is index:
            return index.changed_since(cluster, changes).union(self._left)
        self._index = weakref.ref(index)
        return None

    def left(self, upcoming: Collection[TopicAndPartition]) -> None:
        """Note the partitions of a plan."""
        self._left = upcoming


class KnownGenerations:
    """The lake's notes of source generations, which precede their first staged record. `read` reads
    them all, once for each generation that is new in a batch."""

    def __init__(self, read: Callable[[], SourceGenerations]) -> None:
        self._read = read
        self._known = SourceGenerations()
        self._met: set[PartitionGeneration] = set()

    def refresh(self, partitions: Iterable[PartitionPlan]) -> None:
        """Read the notes again if a plan has a new generation."""
        new = {plan.place for plan in partitions} - self._met
        if new:
            self._known = self._read()
            self._met |= new

    def ids(self, key: TopicAndPartition) -> GenerationIds:
        """The ids of a partition's generations."""
        return self._known.ids(key)
