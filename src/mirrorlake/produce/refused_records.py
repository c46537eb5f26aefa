"""How the driver handles records that a target refused: it parks or reports them.

Parked records are noted before anything behind them is produced. If the process dies in between,
the next one finds them noted, or has them refused once more.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake import failpoints
from mirrorlake.errors import (
    MapBehind,
    MapUnknown,
    PositionLost,
    TargetLost,
    TargetRefused,
    TopicRefused,
)
from mirrorlake.offsets.parked import Parked, ParkedOffsets
from mirrorlake.offsets.positions import MirroredPartition, PartitionGeneration
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.codecs import Codecs, of_size
from mirrorlake.produce.counted import Skipped
from mirrorlake.produce.spec import FlowSpec

if TYPE_CHECKING:
    from mirrorlake.lake.map_store import LakeMap

logger = logging.getLogger(__name__)

_REFUSALS = {
    kind.incident_kind: kind
    for kind in (TargetRefused, TopicRefused, PositionLost, MapBehind, MapUnknown)
}
_NONE = OffsetRanges()
_PLACE = ("topic", "partition", "generation", "target_topic", "target_generation")


class RefusedRecords:
    """The refused records of one flow."""

    def __init__(self, store: "LakeMap", codecs: Codecs) -> None:
        self._store = store
        self._codecs = codecs
        self._parked = ParkedOffsets(store.parked())

    def skipped(self, plans: Iterable[PartitionPlan], spec: FlowSpec) -> Skipped:
        """Offsets that a batch leaves out of partitions: given up, parked, or forgotten."""
        skipped = {}
        for plan in plans:
            place = MirroredPartition(*plan.place, plan.target_topic, plan.floor.target_generation)
            bounds = plan.first, plan.last
            ranges = (
                *spec.skipped.get(plan.place, _NONE).within(*bounds),
                *self._parked.within(place, *bounds),
                *spec.forgotten.get(plan.place, _NONE).within(*bounds),
            )
            if ranges:
                skipped[plan.key] = ranges
        return skipped

    def take(self, result: pa.Table, spec: FlowSpec) -> FlowSpec:
        """Park refused records where the flow wants that. Returns the spec to go on with: without
        all other refused partitions, except those that another codec may help, which are tried
        again, and those whose map is behind, which go on once the stage has all that the target
        took.

        Raises the refusal if the spec has no `on_refused`.
        """
        rows = result.filter(pc.is_valid(result["refused_first"])).to_pylist()
        if not rows:
            return spec
        failpoints.reached("refused")
        final = self._codecs.final(rows)
        parking: list[Mapping[str, Any]] = []
        others: list[Mapping[str, Any]] = []
        for row in final:
            parks = row["refused_records"] and _parks(spec, row)
            (parking if parks else others).append(row)
        if parking:
            self._park(parking, spec)
        refusals = [_refusal(row, self._codecs.codec_of(row["shard"])) for row in others]
        behind = {
            PartitionGeneration(*one.topic_partition, one.generation or 0): one
            for one in refusals
            if isinstance(one, MapBehind)
        }
        stopped = [one for one in refusals if not isinstance(one, MapBehind)]
        if stopped:
            if spec.on_refused is None:
                raise stopped[0]
            spec.on_refused(stopped)
        blocked = spec.blocked | {refusal.topic_partition for refusal in stopped}
        whole = {
            place: one
            for place, one in {**spec.whole, **behind}.items()
            if place.topic_partition not in blocked
        }
        return replace(spec, blocked=blocked, whole=whole)

    def _park(self, rows: Iterable[Mapping[str, Any]], spec: FlowSpec) -> None:
        parked = [
            Parked(**{name: row[name] for name in _PLACE}, **one)
            for row in rows
            for one in row["refused_records"]
        ]
        self._store.park(parked)
        failpoints.reached("parked")
        self._parked.add(parked)
        for row in rows:
            records = row["refused_records"]
            first, last = records[0], records[-1]["offset"]
            where = f"{row['topic']}-{row['partition']}, offsets {first['offset']} to {last}"
            text = "flow %s parks %d records of %s: %s"
            logger.warning(text, spec.name, len(records), where, first["reason"])
        if spec.on_parked is not None:
            spec.on_parked([PartitionGeneration.from_row(row) for row in rows])


def _parks(spec: FlowSpec, row: Mapping[str, Any]) -> bool:
    return spec.parks or row["refused_first"] in spec.park_at.get(
        PartitionGeneration.from_row(row), _NONE
    )


def _refusal(row: Mapping[str, Any], codec: str) -> TargetRefused:
    """The error that stopped a partition; `codec` is the one that compressed its records."""
    place = {name: row[name] for name in _PLACE}
    place |= {"first_offset": row["refused_first"], "last_offset": row["refused_last"]}
    if row["refused_kind"] == TargetLost.incident_kind:
        return TargetLost(row["refused_reason"], target_offset=row["refused_target"], **place)
    place |= {"target_offset": row["refused_target"]}
    text = row["refused_reason"]
    if of_size(row):
        text += (
            f" (it was sent compressed by {codec}, and brokers measure what they get: the source "
            "may have taken it compressed by another codec, which the flow's compression can name)"
        )
    return _REFUSALS[row["refused_kind"]](text, **place)
