"""What there is to compare of a flow, by the tables and the clusters: partitions, how far they are mapped, what may
differ there, and what was proven before."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnusable
from mirrorlake.kafka.admin_configs import describe_topic_configs
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicConfigs
from mirrorlake.lake.forgotten import forgotten_from
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.table_upkeep import removals_from
from mirrorlake.lake.targets import noted_targets
from mirrorlake.landing.generations import generations_of
from mirrorlake.naming.policy import HEARTBEATS
from mirrorlake.offsets.parked import Parked, ParkedOffsets
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.ranges import NO_END, OffsetRanges
from mirrorlake.offsets.stage_index import PartitionRanges, StageIndex
from mirrorlake.verify import verdict as kinds
from mirrorlake.verify.in_flight import in_flight
from mirrorlake.verify.ranges import Extent
from mirrorlake.verify.verdict import Allowances

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Audited:
    """A stretch of source offsets that was compared before, and up to where the target's log was read for it."""

    extent: Extent
    proven: bool
    target_last: int
    record_count: int


@dataclass(frozen=True)
class Standing:
    """One partition of a flow that has something to compare.

    Offsets `first` to `end` (exclusive) are staged and mapped. `target_first` is where the flow began at the target,
    `target_end` (exclusive) up to where its log is known to belong to the flow. `asks_source` is False where the
    source's topic is another one than the staged one.
    """

    topic: str
    partition: int
    generation: int
    target_topic: str
    target_generation: int
    first: int
    end: int
    target_first: int
    target_end: int
    allowed: Allowances
    asks_source: bool = True
    audited: tuple[Audited, ...] = field(default=(), repr=False)

    @property
    def key(self) -> TopicAndPartition:
        """The source partition."""
        return self.topic, self.partition


class FlowStanding:
    """What there is to compare of one flow, asked once.

    The target is asked before the map is read: what lies in front of the end that it said is then in the map, or in the
    metadata of the positions that it said (`in_flight`), or not of the flow.
    """

    def __init__(self, flow: ResolvedFlow, lake: Lake, connections: Connections, wanted: Callable[[Row], bool]) -> None:
        """Ask. Raises ClusterUnusable."""
        self.flow = flow
        self._lake = lake
        self._connections = connections
        names = {(row["target_topic"], row["partition"]) for row in self._extents(wanted)}
        try:
            self._ends = connections.admin(flow.target).told_ends(names)
            self._flying = in_flight(flow, lake, connections, names)
        except KafkaException as error:
            said = f"cluster {flow.target} does not say what it has of flow {flow.name}: {error.args[0].str()}"
            raise ClusterUnusable(said, alias=flow.target) from error
        self._rows = _newest(self._extents(wanted))
        topics = {row["topic"] for row in self._rows}
        self._target_configs = self._configs(flow.target, {row["target_topic"] for row in self._rows})
        self._source_configs = self._configs(flow.source, topics)
        self._generations = generations_of(lake, flow.source)
        self._source_ids = connections.admin(flow.source).topic_ids(sorted(topics))
        self._noted, _ = noted_targets(lake, flow.name)
        self._audited = self._asked_audits()
        self._left_out = self._asked_left_out()
        self._forgotten = forgotten_from(lake, flow.source)
        self._parked = ParkedOffsets(Parked(**row) for row in lake.ask("parked_of", flow=flow.name))
        self.shared_targets = frozenset(
            row["target_topic"] for row in lake.ask("verify_shared_targets", flow=flow.name)
        )

    def partitions(self, index: StageIndex) -> list[Standing]:
        """Every partition of which the stage holds something that is mapped, in order."""
        staged = index.topics(self.flow.source)
        found = (self._standing(row, staged.get(row["topic"], {}).get(row["partition"])) for row in self._rows)
        return sorted((item for item in found if item is not None), key=lambda item: item.key)

    def _extents(self, wanted: Callable[[Row], bool]) -> list[Row]:
        return [row for row in self._lake.ask("verify_extents", flow=self.flow.name) if wanted(row)]

    def _configs(self, alias: str, topics: Collection[str]) -> Mapping[str, TopicConfigs]:
        return describe_topic_configs(self._connections.admin(alias), sorted(topics)).configs

    def _standing(self, row: Row, staged: PartitionRanges | None) -> Standing | None:
        topic, partition, target_topic = row["topic"], row["partition"], row["target_topic"]
        first = _first_staged(staged, row["generation"])
        if PartitionGeneration(topic, partition, row["generation"]) not in self._left_out[kinds.STAGE_TRIMMED]:
            first = min(row["source_first"] if first is None else first, row["source_first"])  # nothing may be gone
        if first is None:
            return None
        noted = next(
            (item for item in self._noted.get(target_topic, ()) if item.number == row["target_generation"]), None
        )
        if noted is not None and noted.begins == "end":
            first = max(first, row["source_first"])
        began = row["target_first"]
        if noted is not None and partition < len(noted.began):
            began = min(began, noted.began[partition])
        flying = self._flying.get((target_topic, partition))
        end = (
            row["target_end"]
            if flying is None
            else max(row["target_end"], self._ends.get((target_topic, partition), 0))
        )
        place = (topic, partition, row["generation"], target_topic, row["target_generation"])
        known = self._generations.topics.get(topic)
        return Standing(
            *place,
            *(first, row["source_end"], began, end),
            self._allowed(row, flying or ()),
            asks_source=(known is None or self._source_ids.get(topic) == known.topic_id)
            and row["generation"] == self._generations.generation((topic, partition)),
            audited=tuple(self._audited.get(place, ())),
        )

    def _allowed(self, row: Row, flying: Iterable[Extent]) -> Allowances:
        source = self._source_configs.get(row["topic"], {})
        target = self._target_configs.get(row["target_topic"], {})
        place = PartitionGeneration(row["topic"], row["partition"], row["generation"])
        left_out = {why: places.get(place) for why, places in self._left_out.items()}
        left_out[kinds.FORGOTTEN] = self._forgotten.get(place)
        at_target = (*place, row["target_topic"], row["target_generation"])
        left_out[kinds.PARKED] = OffsetRanges(self._parked.within(at_target, 0, NO_END))
        heartbeats = row["target_topic"] == HEARTBEATS  # the target's own go there, too
        return Allowances(
            source_compacts=_compacts(source),
            target_compacts=_compacts(target),
            target_keeps_from=_keeps_from(target),
            left_out={why: ranges for why, ranges in left_out.items() if ranges},
            others=tuple(flying),
            shared=self.flow.settings.provenance == "headers",
            others_anywhere=heartbeats,
        )

    def _asked_audits(self) -> Mapping[tuple[str, int, int, str, int], list[Audited]]:
        found = defaultdict(list)
        for row in self._lake.ask("proven_ranges", flow=self.flow.name):
            extent = (row["first_offset"], row["last_offset"])
            item = Audited(extent, row["proven"], row["target_last_offset"], row["record_count"])
            place = (row["topic"], row["partition"], row["generation"], row["target_topic"], row["target_generation"])
            found[place].append(item)
        return found

    def _asked_left_out(self) -> dict[str, dict[PartitionGeneration, OffsetRanges]]:
        targets = {row["topic"]: row["target_generation"] for row in self._rows}
        decided = Incidents(self._lake).decided(self.flow.name, targets.get)
        trimmed: dict[PartitionGeneration, OffsetRanges] = dict(decided.trimmed)
        for item in removals_from(self._lake, self.flow.source):
            trimmed.setdefault(item.place, OffsetRanges()).add([(item.first_offset, item.below - 1)])
        return {kinds.GIVEN_UP: decided.skipped, kinds.STAGE_TRIMMED: trimmed}


def _newest(extents: Iterable[Row]) -> list[Row]:
    """Of each partition what is mapped of the newest generation of its topic, in the target topic that got it last."""
    found: dict[TopicAndPartition, Row] = {}
    for row in extents:
        known = found.get((row["topic"], row["partition"]))
        rank = (row["generation"], row["source_end"])
        if known is None or rank > (known["generation"], known["source_end"]):
            found[row["topic"], row["partition"]] = row
    return list(found.values())


def _first_staged(staged: PartitionRanges | None, generation: int) -> int | None:
    """The first offset of a generation that the stage holds; None: nothing of it."""
    item = None if staged is None else next(staged.above(generation, 0), None)
    return item.first if item is not None and item.generation == generation else None


def _compacts(configs: TopicConfigs) -> bool:
    value = configs.get("cleanup.policy")
    return value is not None and "compact" in (value.value or "")


def _keeps_from(configs: TopicConfigs) -> int | None:
    """Records with an older timestamp (ms) may have been deleted by retention; any, where a size bounds it."""
    found = {
        name: configs[name].value for name in ("cleanup.policy", "retention.ms", "retention.bytes") if name in configs
    }
    if "delete" not in (found.get("cleanup.policy") or "delete"):
        return None
    now = time.time_ns() // 1_000_000
    if int(found.get("retention.bytes") or -1) >= 0:
        return now
    kept = int(found.get("retention.ms") or -1)
    return None if kept < 0 else now - kept
