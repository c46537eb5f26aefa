"""What a flow has to compare, by the tables and the clusters: partitions, how far they are mapped,
what may differ there, and what was proven before."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from confluent_kafka import KafkaException

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnusable
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_configs import describe_topic_configs
from mirrorlake.kafka.retention import compacts, keeps_deletions_ms, keeps_from
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.forgotten import forgotten_from
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.retention import Removal
from mirrorlake.lake.source_generations import source_generations
from mirrorlake.lake.starts import starts_of
from mirrorlake.lake.table_upkeep import flow_floors, removals_from
from mirrorlake.lake.targets import LivingMirror, noted_targets
from mirrorlake.landing.generations import generations_of
from mirrorlake.naming.policy import HEARTBEATS
from mirrorlake.offsets.parked import Parked, ParkedOffsets
from mirrorlake.offsets.partition_ranges import PartitionRanges
from mirrorlake.offsets.positions import (
    GenerationOffset,
    MirroredPartition,
    PartitionGeneration,
    TopicAndPartition,
    partitions_of,
)
from mirrorlake.offsets.ranges import NO_END, OffsetRanges
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.verify import verdict as kinds
from mirrorlake.verify.in_flight import TargetPosition, target_positions
from mirrorlake.verify.partition_scope import (
    Audited,
    ExtentRow,
    PartitionScope,
    first_staged,
    newest_extents,
)
from mirrorlake.verify.ranges import Extent, without
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
    """

    def __init__(
        self, flow: ResolvedFlow, deployment: Deployment, wanted: Callable[[ExtentRow], bool]
    ) -> None:
        """Query both clusters and the lake. Raises ClusterUnusable."""
        self.flow, self.deployment = flow, deployment
        lake, connections = deployment.lake, deployment.connections
        self._lake = lake
        self._generations = generations_of(lake, flow.source)
        self._ids = source_generations(lake.now, flow.name)
        self._noted, _ = noted_targets(lake, flow.name)
        source, target = connections.admin(flow.source), connections.admin(flow.target)
        self._ask_source(source, wanted)
        self._ask_target(target, wanted)
        self._rows = newest_extents(self._extents(wanted))
        self.floors = flow_floors(lake, flow.name, flow.target_topic)
        topics = {row["topic"] for row in self._rows} | self.selected
        mirrors = {row["target_topic"] for row in self._rows} | {
            flow.target_topic(topic) for topic in self.selected
        }
        self._target_configs = describe_topic_configs(target, sorted(mirrors)).configs
        self._source_configs = describe_topic_configs(source, sorted(topics)).configs
        identities, missing = source.identities(sorted(topics))
        self._source_ids = {name: topic.topic_id for name, topic in identities.items()}
        self.hidden = frozenset(topics - identities.keys() - missing)
        #: When the flow's known ranges were last compared; None: never.
        self.audited_at: datetime | None = None
        self._audited = self._read_audits()
        self._removals = removals_from(lake, flow.source)
        self._left_out, self._removed = self._read_left_out(), self._read_removed()
        self._forgotten = forgotten_from(lake, flow.source)
        self._starts = starts_of(lake.now, flow.name)
        self._parked = ParkedOffsets(Parked(**row) for row in lake.ask("parked_of", flow=flow.name))
        self.shared_targets = frozenset(
            row["target_topic"] for row in lake.ask("verify_shared_targets", flow=flow.name)
        )

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

    def _ask_target(self, target: ClusterAdmin, wanted: Callable[[ExtentRow], bool]) -> None:
        """Query what the target has, and how far it reports the flow to be."""
        flow = self.flow
        names = {(row["target_topic"], row["partition"]) for row in self._extents(wanted)}
        try:
            there, mirrors = target.topics(), {flow.target_topic(topic) for topic in self.selected}
            known = {name: there[name].partitions for name in mirrors & there.keys()}
            names.update(partitions_of(known))
            self._ends = target.end_offsets(names, skip_silent=True)
            self._positions = target_positions(flow, self.deployment, names)
        except KafkaException as error:
            message = (
                f"cluster {flow.target} does not say what it has of flow {flow.name}: "
                f"{error.args[0].str()}"
            )
            raise ClusterUnusable(message, alias=flow.target) from error

    def partitions(self, index: StageIndex) -> list[PartitionScope]:
        """Each partition of which the stage holds records that the flow has passed, in order."""
        staged = index.topics(self.flow.source)
        rows = {(row["topic"], row["partition"]): row for row in self._rows}
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

    def untouched(self, index: StageIndex) -> dict[TopicAndPartition, tuple[str, int, int]]:
        """The target partitions to which the flow has brought nothing and whose logs have grown
        since it began: each with its source topic, the end of then and the one of now. In a topic
        that others write to as well nothing says whose that is."""
        if self.flow.settings.provenance != "none":
            return {}
        names = {self.flow.target_topic(topic): topic for topic in self.selected}
        staged = index.topics(self.flow.source)
        mapped = {(row["topic"], row["partition"]) for row in self._rows}
        grown = {}
        for (name, partition), end in self._ends.items():
            topic, noted = names.get(name, ""), self._noted.get(name, ())
            shared = self._is_shared(name)
            brought = (name, partition) in self._positions or (topic, partition) in mapped
            if not (topic and noted) or shared or brought or partition in staged.get(topic, {}):
                continue
            began = noted[-1].began  # an earlier version did not note it
            first = began[partition] if partition < len(began) else 0
            if began and first < end:
                grown[name, partition] = topic, first, end
        return grown

    def beyond_maps(self) -> list[tuple[ExtentRow, int]]:
        """The rows of the map, of topics that the flow selects, behind whose ends logs of the
        target go on, up to the ends given with them, while the target does not know how far the
        flow is. In a topic that others write to as well nothing says whose that is."""
        if self.flow.settings.provenance != "none":
            return []
        grown = []
        for row in self._rows:
            place = row["target_topic"], row["partition"]
            end = self._ends.get(place, 0)
            is_known = place in self._positions or self._is_shared(place[0])
            is_unknown = row["topic"] in self.selected and not is_known
            if is_unknown and row["target_end"] < end:
                grown.append((row, end))
        return grown

    def _is_shared(self, target_topic: str) -> bool:
        return target_topic == HEARTBEATS or target_topic in self.shared_targets

    def is_of_mirror(self, row: Mapping[str, Any]) -> bool:
        """Whether an incident (`target_topic`, `target_generation`) may be about what its topic is
        mirrored to now."""
        return row["topic"] is None or self._mirror(row["topic"]).is_of(row)

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
        branch, generation = self._generations.branches.get(key), self._generations.generation(key)
        ends = [0 if branch is None or branch.generation != generation else branch.first]
        ends += [0 if staged is None else staged.ends().get(generation, 0)]
        place = PartitionGeneration(*key, generation)
        ends += [last + 1 for _, last in self._forgotten.get(place, ())]
        ends += [removal.below for removal in self._removals if removal.place == place]
        return GenerationOffset(generation, max(ends))

    def left_out(
        self, key: TopicAndPartition, generation: int, compared: PartitionScope | None
    ) -> list[Extent]:
        """Source offsets of a generation that the flow leaves out on purpose."""
        if compared is not None and compared.generation == generation:
            known = compared.allowed.left_out.items()
            return [extent for why, some in known if why != kinds.REMOVED for extent in some]
        return list(self._forgotten.get(PartitionGeneration(*key, generation), ()))

    def differed(
        self, compared: Iterable[PartitionScope]
    ) -> Iterator[tuple[PartitionGeneration, Extent, str]]:
        """Source offsets that differed when they were compared, with the verdict, and that the
        stage no longer has: nothing can prove them now."""
        firsts = {one.place: one.first for one in compared}
        for row in self._rows:
            place, generation = MirroredPartition.from_row(row), PartitionGeneration.from_row(row)
            gone = sorted(self._gone(generation), key=lambda extent: extent[1])[-1:]
            below = firsts.get(generation, gone[0][1] + 1 if gone else 0)
            for one in self._audited.get(place, ()):
                if gone and not one.proven and one.extent[0] < below:
                    yield generation, (one.extent[0], min(one.extent[1], below - 1)), one.verdict

    def passed_over(self, key: TopicAndPartition) -> list[Extent]:
        """Source offsets of the living generation that the flow may lack for a noted reason: given
        up by an operator, gone from the stage and accepted, or parked."""
        place, name = self._living(key), self.flow.target_topic(key[0])
        mirrored = MirroredPartition(*place, name, self._target_generation(key[0]))
        known = [extent for places in self._left_out.values() for extent in places.get(place, ())]
        if self._has_echoes:
            known += self._removed.get(place, ())
        return [*known, *self._parked.within(mirrored, 0, NO_END)]

    def removed(self, key: TopicAndPartition) -> list[Extent]:
        """Source offsets of the living generation that `maintain` deleted from the stage, or that
        landing passed over. A flow may lack none of them, unless another reason is noted."""
        return [] if self._has_echoes else list(self._removed.get(self._living(key), ()))

    @property
    def _has_echoes(self) -> bool:
        """Whether the flow may have left out echoes, which no map has, and no offset shows."""
        return self.flow.settings.provenance != "none"

    def _living(self, key: TopicAndPartition) -> PartitionGeneration:
        return PartitionGeneration(*key, self._generations.generation(key))

    def begins(self, key: TopicAndPartition) -> int:
        """Where the flow's part of the living generation of a partition begins."""
        generation, branch = self._generations.generation(key), self._generations.branches.get(key)
        own = 0 if branch is None or branch.generation != generation else branch.first
        return max(own, self._starts.get(PartitionGeneration(*key, generation), 0))

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
        target_topic, number = self.flow.target_topic(key[0]), self._target_generation(key[0])
        noted = self._noted.get(target_topic, ())
        position = self._own_position(key, target_topic)
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
        first = max(first, self._starts.get(PartitionGeneration.from_row(row), 0))
        generations = {noted.number: noted for noted in self._noted.get(target_topic, ())}
        noted = generations.get(row["target_generation"])
        if "passed" in row or (noted is not None and noted.begins == "end"):
            first = max(first, row["source_first"])
        began = row["target_first"]
        if noted is not None and partition < len(noted.began):
            began = min(began, noted.began[partition])
        end, target_end = row["source_end"], row["target_end"]
        position = self._positions.get((target_topic, partition))
        if position is not None:
            target_end = max(target_end, self._ends.get((target_topic, partition), 0))
            own = self._own_position((topic, partition), target_topic)
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
        gone = self._gone(place)
        if gone:
            gone += self._forgotten.get(place, ())
        mapped = (row["source_first"], (row["source_end"] if first is None else first) - 1)
        lacking = without(mapped, gone)
        return lacking[0][0] if lacking else first

    def _gone(self, place: PartitionGeneration) -> list[Extent]:
        """What is noted as gone from the stage."""
        accepted = self._left_out[kinds.STAGE_TRIMMED].get(place, ())
        return [*accepted, *self._removed.get(place, ())]

    def _own_position(self, key: TopicAndPartition, target_topic: str) -> TargetPosition | None:
        """The target's committed position of a source partition, in this lake's generations."""
        position = self._positions.get((target_topic, key[1]))
        noted = tuple((one.number, one.topic_id) for one in self._noted.get(target_topic, ()))
        return None if position is None else position.own(self._ids.ids(key), noted)

    def _allowed(self, row: ExtentRow, flying: Iterable[Extent]) -> Allowances:
        source = self._source_configs.get(row["topic"], {})
        target = self._target_configs.get(row["target_topic"], {})
        place = PartitionGeneration.from_row(row)
        left_out = {why: places.get(place) for why, places in self._left_out.items()}
        left_out[kinds.FORGOTTEN] = self._forgotten.get(place)
        left_out[kinds.REMOVED] = self._removed.get(place)
        parked = self._parked.within(MirroredPartition.from_row(row), 0, NO_END)
        left_out[kinds.PARKED] = OffsetRanges(parked)
        heartbeats = row["target_topic"] == HEARTBEATS  # the target's own go there too
        return Allowances(
            source_compacts=compacts(source),
            target_compacts=compacts(target),
            target_keeps_from=keeps_from(target),
            target_keeps_deletions_ms=keeps_deletions_ms(target),
            left_out={why: ranges for why, ranges in left_out.items() if ranges},
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

    def _read_left_out(self) -> dict[str, dict[PartitionGeneration, OffsetRanges]]:
        mirrors = {topic: self._mirror(topic) for topic in self.selected}
        mirrors |= {
            row["topic"]: LivingMirror(row["target_topic"], row["target_generation"])
            for row in self._rows
        }
        none = LivingMirror(None, None)
        decided = Incidents(self._lake).decided(
            self.flow.name, lambda topic: mirrors.get(topic, none)
        )
        accepted = decided.accepted_holes()
        mapped = {PartitionGeneration.from_row(row): row["source_first"] for row in self._rows}
        before = self._mapped_before(mirrors) if self._removals else {}
        for removal in self._removals:
            mirror, place = mirrors.get(removal.topic, none), removal.place
            below = self._lacks_below(removal, mirror, mapped.get(place), before.get(place, 0))
            accepted[place].add(_extents(removal.first_offset, below))
        return {kinds.GIVEN_UP: decided.skipped, kinds.STAGE_TRIMMED: accepted}

    def _mapped_before(
        self, mirrors: Mapping[str, LivingMirror]
    ) -> Mapping[PartitionGeneration, int]:
        """Where the map ends of what earlier generations of target topics have got."""
        ends: dict[PartitionGeneration, int] = {}
        for end in LakeMap(self._lake, self.flow.name).ends()[0]:
            name, number = mirrors.get(end.topic, LivingMirror(None, None))
            if end.target_topic == name and end.target_generation < (number or 0):
                place = PartitionGeneration(end.topic, end.partition, end.generation)
                ends[place] = max(ends.get(place, 0), end.source_position)
        return ends

    def _lacks_below(
        self, removal: Removal, mirror: LivingMirror, first: int | None, before: int
    ) -> int:
        """Below which offset a target topic that was made again lacks by right what was removed:
        `first` is the first offset that is mapped there, `before` is where the topic before it
        ended.

        The time of a removal is that of the last one of its place: once something is mapped, it
        does not tell when the rest was removed, and a flow stops in front of what it lacks."""
        number = mirror.generation or 0
        noted = [one for one in self._noted.get(mirror.name or "", ()) if one.number <= number]
        if not noted or not number:
            return 0
        if noted[-1].begins == "end":
            return min(removal.below, before)
        if first is None:
            return 0 if removal.is_later(noted[-1].noted_at) else removal.below
        return min(removal.below, first)

    def _read_removed(self) -> dict[PartitionGeneration, OffsetRanges]:
        removed: dict[PartitionGeneration, OffsetRanges] = defaultdict(OffsetRanges)
        for removal in self._removals:
            removed[removal.place].add(_extents(removal.first_offset, removal.below))
        return removed

    def _mirror(self, topic: str) -> LivingMirror:
        """What a source topic is mirrored to now."""
        return LivingMirror(self.flow.target_topic(topic), self._target_generation(topic))

    def _target_generation(self, topic: str) -> int:
        """The newest generation of the target topic of a source topic."""
        noted = self._noted.get(self.flow.target_topic(topic), ())
        return noted[-1].number if noted else 0


def _extents(first: int, below: int) -> list[Extent]:
    """The offsets from one up to another (exclusive), as an extent if there is one."""
    return [(first, below - 1)] if first < below else []
