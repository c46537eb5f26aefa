"""What the target of a flow has, and how far it reports the flow to be."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from confluent_kafka import KafkaException

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnusable
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.other_logs import source_generations
from mirrorlake.lake.targets import LivingMirror, noted_targets
from mirrorlake.naming.policy import HEARTBEATS
from mirrorlake.offsets.positions import MirroredPartition, TopicAndPartition, partitions_of
from mirrorlake.run.target_losses import ends_below
from mirrorlake.verify.in_flight import SampledEnd, TargetPosition, sampled_ends, target_positions
from mirrorlake.verify.partition_scope import Audited, ExtentRow
from mirrorlake.verify.verdict import MISSING


class TargetSide:
    """The target of one flow. `noted` are the generations of its topics; `ends` and `positions`, by
    target partition, and `shared`, the topics that other flows of the lake have written to as well,
    are known once `ask` was called."""

    def __init__(
        self, flow: ResolvedFlow, deployment: Deployment, selected: Collection[str]
    ) -> None:
        """`selected` are the source topics that the flow mirrors now."""
        self._flow, self._deployment, self._selected = flow, deployment, selected
        lake = deployment.lake
        self._ids = source_generations(lake.now, flow.name)
        self.noted, _ = noted_targets(lake, flow.name)
        self.shared: frozenset[str] = frozenset()
        self.ends: Mapping[TopicAndPartition, int] = {}
        self.positions: Mapping[TopicAndPartition, TargetPosition] = {}
        self._sampled: Mapping[MirroredPartition, SampledEnd] = {}

    def ask(self, mapped: Iterable[TopicAndPartition]) -> None:
        """Query the ends of the topics that the flow mirrors to and of the target partitions that
        are `mapped`, and only then the flow's positions. Raises ClusterUnusable."""
        flow, names = self._flow, {*mapped}
        target = self._deployment.connections.admin(flow.target)
        try:
            there, mirrors = target.topics(), {flow.target_topic(topic) for topic in self._selected}
            known = {name: there[name].partitions for name in mirrors & there.keys()}
            names.update(partitions_of(known))
            self.ends = target.end_offsets(names, skip_silent=True)
            self.positions = target_positions(flow, self._deployment, names)
        except KafkaException as error:
            message = (
                f"cluster {flow.target} does not say what it has of flow {flow.name}: "
                f"{error.args[0].str()}"
            )
            raise ClusterUnusable(message, alias=flow.target) from error
        rows = self._deployment.lake.ask("verify_shared_targets", flow=flow.name)
        self.shared = frozenset(row["target_topic"] for row in rows)
        self._sampled = sampled_ends(self._deployment.lake, flow.name)

    def generation(self, topic: str) -> int:
        """The newest generation of the target topic of a source topic."""
        noted = self.noted.get(self._flow.target_topic(topic), ())
        return noted[-1].number if noted else 0

    def mirror(self, topic: str) -> LivingMirror:
        """What a source topic is mirrored to now."""
        return LivingMirror(self._flow.target_topic(topic), self.generation(topic))

    def own_position(self, key: TopicAndPartition, target_topic: str) -> TargetPosition | None:
        """The committed position of a source partition, in this lake's generations."""
        position = self.positions.get((target_topic, key[1]))
        noted = tuple((one.number, one.topic_id) for one in self.noted.get(target_topic, ()))
        return None if position is None else position.own(self._ids.ids(key), noted)

    def reached(self, row: ExtentRow) -> ExtentRow:
        """A row of the map; where the target does not know how far the flow is, with the ends that
        the flow's newest sample proves."""
        place = row["target_topic"], row["partition"]
        sampled = self._sampled.get(MirroredPartition.from_row(row))
        if sampled is None or place in self.positions or place not in self.ends:
            return row
        if row["source_end"] < sampled.mapped_end:
            return row
        ends = {"source_end": sampled.offset}
        if not self._is_shared(place[0]):  # what others are just writing is in no map
            ends["target_end"] = min(sampled.target_end, self.ends[place])
        return {**row, **{name: max(end, row[name]) for name, end in ends.items()}}

    def less_lost(
        self, audits: Mapping[MirroredPartition, Sequence[Audited]]
    ) -> Mapping[MirroredPartition, Sequence[Audited]]:
        """Earlier comparisons. Those of which the target's log has lost something since, by its
        end, prove nothing any more. Silent leaders say nothing about that."""
        read: dict[TopicAndPartition, int] = {}
        for place, audited in audits.items():
            log = place.target_topic, place.partition
            ends = (one.target_last + 1 for one in audited if one.proven)
            read[log] = max([read.get(log, 0), *ends])
        target = self._deployment.connections.admin(self._flow.target)
        below = {log: end for log, end in read.items() if self.ends.get(log, end) < end}
        low = ends_below(lambda logs: target.end_offsets(logs, skip_silent=True), below)
        return {
            place: [_known(one, low.get((place.target_topic, place.partition))) for one in audited]
            for place, audited in audits.items()
        }

    def untouched(
        self, staged: Mapping[str, Collection[int]], rows: Iterable[ExtentRow]
    ) -> dict[TopicAndPartition, tuple[str, int, int]]:
        """The partitions to which the flow has brought nothing and whose logs have grown since it
        began: each with its source topic, the end of then and the one of now. `staged` are the
        partitions of which the stage has something, `rows` what is mapped. In a topic that others
        write to as well nothing says whose that is."""
        if self._flow.settings.provenance != "none":
            return {}
        names = {self._flow.target_topic(topic): topic for topic in self._selected}
        mapped = {(row["topic"], row["partition"]) for row in rows}
        grown = {}
        for (name, partition), end in self.ends.items():
            topic, noted = names.get(name, ""), self.noted.get(name, ())
            shared = self._is_shared(name)
            brought = (name, partition) in self.positions or (topic, partition) in mapped
            if not (topic and noted) or shared or brought or partition in staged.get(topic, {}):
                continue
            began = noted[-1].began  # an earlier version did not note it
            first = began[partition] if partition < len(began) else 0
            if began and first < end:
                grown[name, partition] = topic, first, end
        return grown

    def beyond_maps(self, rows: Iterable[ExtentRow]) -> list[tuple[ExtentRow, int]]:
        """The rows of the map, of topics that the flow selects, behind whose ends (see `reached`)
        logs go on, up to the ends given with them, while the target does not know how far the flow
        is. In a topic that others write to as well nothing says whose that is."""
        if self._flow.settings.provenance != "none":
            return []
        grown = []
        for row in map(self.reached, rows):
            place = row["target_topic"], row["partition"]
            end = self.ends.get(place, 0)
            is_known = place in self.positions or self._is_shared(place[0])
            is_unknown = row["topic"] in self._selected and not is_known
            if is_unknown and row["target_end"] < end:
                grown.append((row, end))
        return grown

    def _is_shared(self, target_topic: str) -> bool:
        return target_topic == HEARTBEATS or target_topic in self.shared


def _known(audited: Audited, end: int | None) -> Audited:
    """An earlier comparison, as it counts where the target's log ends now."""
    is_lost = audited.proven and end is not None and end <= audited.target_last
    return replace(audited, proven=False, verdict=MISSING) if is_lost else audited
