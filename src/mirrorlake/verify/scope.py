"""What a flow has to compare, by the tables and the clusters: partitions, how far they are mapped,
what may differ there, and what was proven before."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_configs import describe_topic_configs
from mirrorlake.kafka.retention import compacts, keeps_deletions_ms, keeps_from
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.starts import starts_of
from mirrorlake.lake.table_upkeep import floors_by
from mirrorlake.lake.targets import LivingMirror
from mirrorlake.landing.generations import generations_of
from mirrorlake.naming.policy import HEARTBEATS
from mirrorlake.offsets.partition_ranges import PartitionRanges
from mirrorlake.offsets.positions import (
    GenerationOffset,
    MirroredPartition,
    PartitionGeneration,
    TopicAndPartition,
    partitions_of,
)
from mirrorlake.offsets.ranges import Extent, OffsetRanges
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.verify import verdict as kinds
from mirrorlake.verify.left_out import LeftOut
from mirrorlake.verify.partition_scope import (
    Audited,
    ExtentRow,
    PartitionScope,
    first_staged,
    newest_extents,
)
from mirrorlake.verify.target_side import TargetSide
from mirrorlake.verify.verdict import Allowances


class FlowScope:
    """What one flow has to compare, queried once.

    The target is queried before the map is read. So a record in front of the end that it reports is
    in the map, or in the metadata of the positions that it reports (`target_positions`), or not the
    flow's.

    `source_partitions` are those that the flow selects at its source now; `selected` are their
    topics and those that the stage may still have. `source_bounds` has the start and the end of
    each log whose leader reports them, and `hidden` the topics that may exist but may not be
    described. `floors` is where the flow continues behind its map: (generation, source offset).
    `rows` are the newest rows of the map, one per partition.
    """

    def __init__(
        self, flow: ResolvedFlow, deployment: Deployment, wanted: Callable[[ExtentRow], bool]
    ) -> None:
        """Query both clusters and the lake. Raises ClusterUnusable."""
        self.flow, self.deployment = flow, deployment
        lake, connections = deployment.lake, deployment.connections
        self._lake = lake
        self._generations = generations_of(lake, flow.source)
        source = connections.admin(flow.source)
        self._ask_source(source, wanted)
        self.target = TargetSide(flow, deployment, self.selected)
        self.target.ask((row["target_topic"], row["partition"]) for row in self._extents(wanted))
        self.rows = newest_extents(self._extents(wanted))
        ends, starts = LakeMap(lake, flow.name).ends()[0], starts_of(lake.now, flow.name)
        self.floors = floors_by(ends, self.target.noted, starts, flow.target_topic)
        topics = {row["topic"] for row in self.rows} | self.selected
        mirrors = {topic: self.target.mirror(topic) for topic in self.selected}
        mirrors |= {
            row["topic"]: LivingMirror(row["target_topic"], row["target_generation"])
            for row in self.rows
        }
        # a topic may have mirrors of several names, each with partitions that it had last
        names = {row["target_topic"] for row in self.rows}
        names |= {flow.target_topic(topic) for topic in self.selected}
        target = connections.admin(flow.target)
        self._target_configs = describe_topic_configs(target, sorted(names)).configs
        self._source_configs = describe_topic_configs(source, sorted(topics)).configs
        identities, missing = source.identities(sorted(topics))
        self._source_ids = {name: topic.topic_id for name, topic in identities.items()}
        self.hidden = frozenset(topics - identities.keys() - missing)
        #: When the flow's known ranges were last compared; None: never.
        self.audited_at: datetime | None = None
        self._audited = self.target.less_lost(self._read_audits())
        self._left_out = LeftOut(flow, lake, mirrors, starts)
        self._left_out.lacks_by_right(self.target.noted, ends, self.rows)

    def _ask_source(self, source: ClusterAdmin, wanted: Callable[[ExtentRow], bool]) -> None:
        """Which partitions there are to mirror, and what they hold."""
        there = {
            name: info for name, info in source.topics().items() if self._selects(name, wanted)
        }
        self.source_partitions = {
            *partitions_of({name: info.partitions for name, info in there.items()})
        }
        self.selected = there.keys() | {
            name for name in self._generations.topics if self._selects(name, wanted)
        }
        starts = source.start_offsets(self.source_partitions, skip_silent=True)
        ends = source.end_offsets(self.source_partitions, skip_silent=True)
        self.source_bounds = {key: (starts[key], ends[key]) for key in starts.keys() & ends.keys()}

    def _selects(self, topic: str, wanted: Callable[[ExtentRow], bool]) -> bool:
        return self.flow.selection.selects(topic) and wanted(
            {"topic": topic, "target_topic": self.flow.target_topic(topic)}
        )

    def partitions(self, index: StageIndex) -> list[PartitionScope]:
        """Each partition of which the stage holds records that the flow has passed, in order."""
        staged = index.topics(self.flow.source)
        rows = {(row["topic"], row["partition"]): row for row in self.rows}
        for topic in self.selected & staged.keys():
            for partition, ranges in staged[topic].items():
                row = self._passed((topic, partition), rows.get((topic, partition)), ranges)
                if row is not None:
                    rows[topic, partition] = row
        scopes = (
            self._standing(row, staged.get(topic, {}).get(part))
            for (topic, part), row in rows.items()
        )
        return sorted((scope for scope in scopes if scope is not None), key=lambda scope: scope.key)

    def is_of_mirror(self, row: Mapping[str, Any]) -> bool:
        """Whether an incident (`target_topic`, `target_generation`) may be about what its topic is
        mirrored to now."""
        return row["topic"] is None or self.target.mirror(row["topic"]).is_of(row)

    def same_topic(self, topic: str) -> bool:
        """Whether the topic at the source is the one that was staged, or none was."""
        known = self._generations.topics.get(topic)
        return known is None or self._source_ids.get(topic) == known.topic_id

    def is_hidden(self, partition: PartitionScope) -> bool:
        """Whether the source may still have a partition's staged records but does not report them.
        They cannot be proven, but a verdict by the stage alone would count as proven for good."""
        living = partition.generation == self._generations.generation(partition.key)
        return living and partition.topic in self.hidden

    def landed(self, key: TopicAndPartition, staged: PartitionRanges | None) -> GenerationOffset:
        """How far landing has come, counting records that were deleted since."""
        place = self._living(key)
        ends = [self._branched(place)]
        ends += [0 if staged is None else staged.ends().get(place.generation, 0)]
        ends += [last + 1 for _, last in self._left_out.forgotten(place)]
        ends += [last + 1 for _, last in self._left_out.lost_of_stage(place)]
        return GenerationOffset(place.generation, max(ends))

    def left_out(
        self, key: TopicAndPartition, generation: int, compared: PartitionScope | None
    ) -> list[Extent]:
        """Source offsets of a generation that the flow leaves out on purpose."""
        if compared is not None and compared.generation == generation:
            known = compared.allowed.left_out.items()
            return [extent for why, some in known if why != kinds.REMOVED for extent in some]
        return list(self._left_out.forgotten(PartitionGeneration(*key, generation)))

    def differed(
        self, compared: Iterable[PartitionScope]
    ) -> Iterator[tuple[PartitionGeneration, Extent, str]]:
        """Source offsets that differed when they were compared, with the verdict, and that the
        stage no longer has: nothing can prove them now."""
        firsts = {one.place: one.first for one in compared}
        for row in self.rows:
            place, generation = MirroredPartition.from_row(row), PartitionGeneration.from_row(row)
            gone = sorted(self._left_out.gone(generation), key=lambda extent: extent[1])[-1:]
            below = firsts.get(generation, gone[0][1] + 1 if gone else 0)
            for one in self._audited.get(place, ()):
                if gone and not one.proven and one.extent[0] < below:
                    yield generation, (one.extent[0], min(one.extent[1], below - 1)), one.verdict

    def passed_over(self, key: TopicAndPartition) -> list[Extent]:
        """Source offsets of the living generation that the flow may lack for a noted reason."""
        name, number = self.target.mirror(key[0])
        return self._left_out.passed_over(
            MirroredPartition(*self._living(key), name or "", number or 0)
        )

    def removed(self, key: TopicAndPartition) -> list[Extent]:
        """Source offsets of the living generation that were deleted from the stage, or that landing
        passed over, and of which the flow may lack none."""
        return self._left_out.removed(self._living(key))

    def _living(self, key: TopicAndPartition) -> PartitionGeneration:
        return PartitionGeneration(*key, self._generations.generation(key))

    def begins(self, key: TopicAndPartition) -> int:
        """Where the flow's part of the living generation of a partition begins."""
        place = self._living(key)
        return max(self._branched(place), self._left_out.start(place))

    def _branched(self, place: PartitionGeneration) -> int:
        branch = self._generations.branches.get(place.topic_partition)
        return 0 if branch is None or branch.generation != place.generation else branch.first

    def first(
        self,
        key: TopicAndPartition,
        staged: PartitionRanges | None,
        compared: PartitionScope | None,
    ) -> int | None:
        """The first offset of the living generation that is compared or staged; None: none is."""
        generation = self._generations.generation(key)
        first = first_staged(staged, generation)
        if compared is None or compared.generation != generation:
            return first
        return compared.first if first is None else min(first, compared.first)

    def _extents(self, wanted: Callable[[ExtentRow], bool]) -> list[ExtentRow]:
        return [row for row in self._lake.ask("verify_extents", flow=self.flow.name) if wanted(row)]

    def _passed(
        self, key: TopicAndPartition, row: ExtentRow | None, staged: PartitionRanges
    ) -> ExtentRow | None:
        """The row of the map for a partition that the flow has passed up to a position without
        mapping a record of that generation: all its records there are echoes or parked. Else
        None."""
        target_topic, number = self.flow.target_topic(key[0]), self.target.generation(key[0])
        noted = self.target.noted.get(target_topic, ())
        position = self.target.own_position(key, target_topic)
        if position is None or position.target_generation != number:
            return None
        floor = self.floors.get(key, (-1, 0))
        first = first_staged(staged, position.generation)
        known = floor[0] if row is None else max(floor[0], row["generation"])
        is_mapped = row is not None and known == position.generation
        if first is None or known > position.generation or is_mapped:
            return None
        began = noted[-1].began if noted else ()
        start = began[key[1]] if key[1] < len(began) else 0
        target_end = start if row is None else row["target_end"]
        first = max(first, floor[1]) if floor[0] == position.generation else first
        return {
            "topic": key[0],
            "partition": key[1],
            "generation": position.generation,
            "passed": True,
            "target_topic": target_topic,
            "target_generation": number,
            "source_first": first,
            "source_end": first,
            "target_first": target_end,
            "target_end": target_end,
        }

    def _standing(self, row: ExtentRow, staged: PartitionRanges | None) -> PartitionScope | None:
        topic, partition, target_topic = row["topic"], row["partition"], row["target_topic"]
        first = self._first(row, staged)
        if first is None:
            return None
        first = max(first, self._left_out.start(PartitionGeneration.from_row(row)))
        generations = {noted.number: noted for noted in self.target.noted.get(target_topic, ())}
        noted = generations.get(row["target_generation"])
        if "passed" in row or (noted is not None and noted.begins == "end"):
            first = max(first, row["source_first"])
        row, began = self.target.reached(row), row["target_first"]
        if noted is not None and partition < len(noted.began):
            began = min(began, noted.began[partition])
        end, target_end = row["source_end"], row["target_end"]
        position = self.target.positions.get((target_topic, partition))
        if position is not None:
            target_end = max(target_end, self.target.ends.get((target_topic, partition), 0))
            own = self.target.own_position((topic, partition), target_topic)
            here = own is not None and (own.generation, own.target_generation) == (
                row["generation"],
                row["target_generation"],
            )
            if here and position.is_mapped(row["target_end"]):
                end = max(end, position.offset)
        if end <= first:
            return None
        place = MirroredPartition.from_row(row)
        living = row["generation"] == self._generations.generation((topic, partition))
        return PartitionScope(
            *place,
            *(first, end, began, target_end),
            self._allowed(row, () if position is None else position.written),
            asks_source=living and self.same_topic(topic),
            audited=tuple(self._audited.get(place, ())),
        )

    def _first(self, row: ExtentRow, staged: PartitionRanges | None) -> int | None:
        """The first offset that is mapped and not noted as gone from the stage, or else the first
        staged one; None: there is none."""
        place, first = PartitionGeneration.from_row(row), first_staged(staged, row["generation"])
        gone = self._left_out.gone(place)
        if gone:
            gone += self._left_out.forgotten(place)
        end = row["source_end"] if first is None else first
        lacking = OffsetRanges(gone).lacking(row["source_first"], end - 1)
        return lacking[0][0] if lacking else first

    def _allowed(self, row: ExtentRow, flying: Iterable[Extent]) -> Allowances:
        source = self._source_configs.get(row["topic"], {})
        target = self._target_configs.get(row["target_topic"], {})
        heartbeats = row["target_topic"] == HEARTBEATS  # the target's own go there too
        return Allowances(
            source_compacts=compacts(source),
            target_compacts=compacts(target),
            target_keeps_from=keeps_from(target),
            target_keeps_deletions_ms=keeps_deletions_ms(target),
            left_out=self._left_out.by_reason(MirroredPartition.from_row(row)),
            others=tuple(flying),
            shared=self.flow.settings.provenance == "headers",
            others_anywhere=heartbeats,
        )

    def _read_audits(self) -> Mapping[MirroredPartition, list[Audited]]:
        audits = defaultdict(list)
        for row in self._lake.ask("proven_ranges", flow=self.flow.name):
            extent = (row["first_offset"], row["last_offset"])
            names = ("proven", "target_last_offset", "record_count", "verdict")
            audited = Audited(extent, *(row[name] for name in names))
            audits[MirroredPartition.from_row(row)].append(audited)
            self.audited_at = max(self.audited_at or row["audited_at"], row["audited_at"])
        return audits
