"""Offsets that a landing query may have staged around: nothing shows that a task has read them, and
the stage holds records behind them.

Where a session commits, Delta has committed before it is known what Spark's tasks have read
(`landing/session_sink.py`): a process may die then, or Spark leave out a part, and flows take a
hole for offsets without records. So the end of such a query, or the next process, checks: as many
records as offsets are no hole; if there are fewer, the source shows which there are.
"""

from collections.abc import Mapping

import numpy as np
from confluent_kafka import KafkaException

from mirrorlake import failpoints
from mirrorlake.config.cluster import Landing
from mirrorlake.errors import MirrorlakeError, text_of
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.kafka.log import read_ranges
from mirrorlake.kafka.refusals import silence_in_words
from mirrorlake.lake.forgotten import forgotten_from
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import OFFSET_RANGES, Frame
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.landing.checkpoints import forget_query, left_queries
from mirrorlake.landing.gaps import Doubtful, Gap, doubtful
from mirrorlake.landing.land import land_again
from mirrorlake.landing.landing_incidents import FlowSelections, LandingIncidents
from mirrorlake.landing.source_comparison import LandingPlan, Planned
from mirrorlake.offsets.positions import PartitionGeneration, Ranges, TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges, are_in
from mirrorlake.spark.tasks import deal

StagedOffsets = Mapping[PartitionGeneration, OffsetRanges]
"""Offsets that are there, or are not to be."""
Missing = Mapping[PartitionGeneration, np.ndarray]
"""Offsets that the source has and the stage has not, rising."""


class UnreadOffsets:
    """Checks what queries of a source cluster have left, and lands missing records again."""

    def __init__(
        self, alias: str, lake: Lake, stage: StageFiles, incidents: LandingIncidents
    ) -> None:
        self._alias = alias
        self._lake = lake
        self._stage = stage
        self._incidents = incidents
        #: The first error that operators saw, if any.
        self.reported: MirrorlakeError | None = None

    def make_up(
        self,
        planned: Planned,
        flows: FlowSelections,
        landing: Landing,
        client: Settings,
        own: str = "",
    ) -> None:
        """Compare what queries were to read (`left_queries`) with what is staged, report what is
        missing, land it again once, and forget the queries, except those with a partition that is
        refused for now. To be called when none of them can commit any more. Raises ClusterUnusable,
        and the errors of landing again: then it is to be done again."""
        left = left_queries(self._lake, self._alias, own)
        later = set[PartitionGeneration]()
        if left:
            with self._stage.reading() as index:
                found = doubtful(index, self._alias, left)
            later = {place for place in found if place.topic_partition in planned.refused}
            ranges = {place: found[place] for place in found if place not in later}
            unknown = {
                place: why for place in ranges if (why := _unreadable(planned, place, ranges))
            }
            asked = {place: ranges[place] for place in ranges if place not in unknown}
            staged = self._staged(asked)
            missing = self._missing(asked, staged, client, unknown)
            gaps = _gaps(ranges, unknown, missing)
            if gaps:
                news = self._incidents.gaps(gaps, flows)
                self.reported = self.reported or news
                failpoints.reached("gap-noted")
            if missing:
                occasion = f"what was left by {' '.join(query.name for query in left)}"
                self._land(missing, staged, landing, client, occasion)
        for query in left:
            if later.isdisjoint(query.places):
                forget_query(self._lake, self._alias, query.name)

    def _land(
        self,
        missing: Missing,
        staged: StagedOffsets,
        landing: Landing,
        client: Settings,
        occasion: str,
    ) -> None:
        """Land what is missing, besides what is there."""
        generations = {
            place.topic_partition: place.generation for place in missing if place.generation
        }
        starts = {place.topic_partition: int(rows[0]) for place, rows in missing.items()}
        ends = {place.topic_partition: int(rows[-1]) + 1 for place, rows in missing.items()}
        plan = LandingPlan(self._alias, starts, generations, self._stage.newest_batch())
        besides = {place.topic_partition: staged[place] for place in missing}
        land_again(self._lake, plan, landing, client, ends=ends, occasion=occasion, besides=besides)

    def _staged(self, ranges: Doubtful) -> StagedOffsets:
        """The staged offsets, and those that were deleted by predicate."""
        asked = [(*place, first, end - 1) for place, (first, end) in ranges.items()]
        places = {place.topic_partition: place for place in ranges}
        staged = {place: OffsetRanges() for place in ranges}
        frames = {"wanted": Frame(OFFSET_RANGES, asked)}
        rows = self._lake.ask("staged_runs", frames, source_cluster=self._alias) if asked else ()
        for row in rows:
            place = places[row["topic"], row["partition"]]
            staged[place].add([(row["first_offset"], row["last_offset"])])
        for place, forgotten in forgotten_from(self._lake, self._alias).items() if asked else ():
            if place in staged:
                staged[place].add(forgotten)
        return staged

    def _missing(
        self,
        ranges: Doubtful,
        staged: StagedOffsets,
        client: Settings,
        unknown: dict[PartitionGeneration, str],
    ) -> Missing:
        """The offsets that the source has and the stage lacks. `unknown` gets reasons for
        partitions that it refuses to read: no answer about others. Raises ClusterUnusable."""
        try:
            return self._lacking(ranges, staged, client)
        except KafkaException as error:
            if len(ranges) == 1:
                unknown.update(dict.fromkeys(ranges, text_of(error)))
                return {}
        places, missing = list(ranges), dict[PartitionGeneration, np.ndarray]()
        for part in deal(places, 2):
            missing |= self._missing({at: ranges[at] for at in part}, staged, client, unknown)
        return missing

    def _lacking(self, ranges: Doubtful, staged: StagedOffsets, client: Settings) -> Missing:
        """The same for all at once. Raises KafkaException, ClusterUnusable."""
        places = {place.topic_partition: place for place in ranges}
        asked: Ranges = {place.topic_partition: bounds for place, bounds in ranges.items()}
        missing: dict[TopicAndPartition, list[np.ndarray]] = {}
        with silence_in_words(self._alias, client):
            for key, rows in read_ranges(self._alias, client, asked) if asked else ():
                offsets = rows.column("offset").to_numpy(zero_copy_only=False)
                fresh = offsets[~are_in(list(staged[places[key]]), offsets)]
                if len(fresh):
                    missing.setdefault(key, []).append(fresh)
        return {places[key]: np.concatenate(parts) for key, parts in missing.items()}


def _gaps(
    ranges: Doubtful, unknown: Mapping[PartitionGeneration, str], missing: Missing
) -> list[Gap]:
    gaps = [
        Gap(place, ranges[place][0], ranges[place][1] - 1, None, why)
        for place, why in sorted(unknown.items())
    ]
    for place, offsets in sorted(missing.items()):
        gaps.append(Gap(place, int(offsets[0]), int(offsets[-1]), len(offsets)))
    return gaps


def _unreadable(planned: Planned, place: PartitionGeneration, ranges: Doubtful) -> str:
    """Why the source cannot be asked for offsets any more; empty where it can."""
    key, (first, _) = place.topic_partition, ranges[place]
    if key not in planned.plan.starts:
        return "the partition cannot be read now, or waits for a decision"
    if planned.current_generations.generation(key) != place.generation:
        return "the topic was made again since, or its log went back"
    start = planned.log[key].start
    return f"the log begins at offset {start} now" if start > first else ""
