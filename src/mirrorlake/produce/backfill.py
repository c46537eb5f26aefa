"""Working off a stage by offsets, where its commits do not tell the order: an OPTIMIZEd or restored table."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from mirrorlake.core.batch import BatchPlan, FileRange, Floor, PartitionPlan, plan_batch
from mirrorlake.lake import stage
from mirrorlake.lake.lake import Lake
from mirrorlake.produce.spec import FlowSpec

logger = logging.getLogger(__name__)

Floors = dict[tuple[str, int], Floor]


class Backfill:
    """What is left of one version of the stage for a flow. Does not produce itself: `next` plans, `done` takes note."""

    def __init__(self, lake: Lake, spec: FlowSpec, floors: Floors) -> None:
        self.version = lake.version_of("records")
        self._lake = lake
        self.spec = spec
        self._pieces: list[PartitionPlan] = []
        self._left = self._plan(floors)
        logger.info("flow %s: backfill of %d partitions up to version %d", spec.name, len(self._left), self.version)

    @property
    def finished(self) -> bool:
        """Whether all that this version holds has been produced."""
        return not self._left

    def _plan(self, floors: Mapping[tuple[str, int], Floor]) -> list[PartitionPlan]:
        ranges = stage.staged_ranges(self._lake, self.spec.selected, self.version)
        plan = plan_batch(ranges, floors, self.spec.remote_topic, self.spec.shard_count, self.spec.held)
        return [partition for shard in plan.shards for partition in shard.partitions]

    def next(self, floors: Floors) -> tuple[BatchPlan, bool]:
        """The next piece, to be read sorted, and whether it is the last of this version."""
        plans = [replace(plan, floor=self._floor(floors, plan)) for plan in self._left]
        self._pieces = stage.cut_windows(plans, self.spec.max_records)
        ranges = [
            FileRange("", self.version, piece.topic, piece.partition, piece.first, piece.last, 1, piece.generation)
            for piece in self._pieces
        ]
        plan = plan_batch(ranges, floors, self.spec.remote_topic, self.spec.shard_count, self.spec.held)
        ends = {(piece.topic, piece.partition): piece.last for piece in self._pieces}
        whole = all(ends.get((plan.topic, plan.partition), plan.last) == plan.last for plan in plans)
        # An elder life of a topic hides a newer one, so there may be more behind it.
        return replace(plan, ordered=False), whole and all(plan.generation == 0 for plan in plans)

    def done(self, floors: Floors, complete: bool) -> None:
        """Take note that the piece was produced; `floors` are moved over windows that held no record (compaction)."""
        if complete:
            for piece in self._pieces:
                known = self._floor(floors, piece)
                if known.source <= piece.last:
                    floors[piece.topic, piece.partition] = replace(known, source=piece.last + 1)
        self._left = [
            plan
            for plan in self._left
            if self._floor(floors, plan).source <= plan.last and (plan.topic, plan.partition) not in self.spec.held
        ]
        if not self._left:
            self._left = self._plan(floors)

    def _floor(self, floors: Floors, plan: PartitionPlan) -> Floor:
        known = floors.get((plan.topic, plan.partition))
        return known if known is not None and known.generation == plan.generation else plan.floor
