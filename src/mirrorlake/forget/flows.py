"""The flows that may need staged records, queried so that the answers hold until the records are
deleted."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack

from confluent_kafka import KafkaException

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnusable, LakeError, LeaseTaken
from mirrorlake.forget.still_needed import FlowPositions, known_position
from mirrorlake.kafka.answered_offsets import committed_by
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.forgotten import resends_from
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.other_logs import source_generations
from mirrorlake.lake.table_upkeep import flow_floors
from mirrorlake.lake.targets import noted_targets
from mirrorlake.naming.at_target import name_at_target
from mirrorlake.offsets.positions import GenerationOffset, TopicAndPartition
from mirrorlake.offsets.runs import decode_metadata
from mirrorlake.produce.fencing import fence_all
from mirrorlake.produce.spec import Target
from mirrorlake.run.leases import lease_of_flow
from mirrorlake.run.other_process import runs_elsewhere


class SourceFlows:
    """The flows that read from a source cluster: those of the topology file, others that have rows
    in the map or were about to write records that get some, and `resends`, the replays and restores
    of the topics that have begun and not ended."""

    def __init__(self, deployment: Deployment, alias: str, topics: Collection[str]) -> None:
        lake, connections = deployment.lake, deployment.connections
        self._deployment = deployment
        self._lake, self._connections = lake, connections
        self._topics = topics
        flows = map(connections.topology.flow, connections.topology.flows)
        self._file = {flow.name: flow for flow in flows if flow.source == alias}
        self._mapped: dict[str, dict[TopicAndPartition, str]] = {}
        for row in lake.ask("map_extents"):
            if row["flow"].partition("->")[0] == alias and row["topic"] in topics:
                self._mapped.setdefault(row["flow"], {})[row["topic"], row["partition"]] = row[
                    "target_topic"
                ]
        self._noted = {
            row["flow"]
            for row in lake.ask_table("target_generations")
            if row["flow"].partition("->")[0] == alias and row["topic"] in topics
        }
        self.resends = resends_from(lake, alias, topics)

    def by_their_maps(self) -> list[FlowPositions]:
        """The positions by the tables alone: enough if nothing lies behind the end of a map."""
        names = self._file.keys() | self._mapped.keys() | self._noted
        return [self._known(name, None) for name in (*sorted(names), *self.resends)]

    def held(
        self, names: Iterable[str], stack: ExitStack, waits: dict[str, str]
    ) -> list[FlowPositions]:
        """The positions of some flows, which are blocked from producing until `stack` is closed. If
        another process produces a flow, or its target does not answer, only the tables are known;
        `waits` gets the reason."""
        positions = []
        for name in names:
            committed = None
            try:
                if name in self.resends:
                    waits[name] = "it has begun and not ended"
                else:
                    committed = self._alone(name, stack)
            except LeaseTaken:
                waits[name] = "it is running"
            except (LakeError, ClusterUnusable, ValueError) as error:
                waits[name] = str(error)
            except KafkaException as error:
                waits[name] = f"its target does not say how far it is: {error.args[0].str()}"
            positions.append(self._known(name, committed))
        return positions

    def _known(
        self, name: str, committed: Mapping[TopicAndPartition, GenerationOffset] | None
    ) -> FlowPositions:
        flow = self._file.get(name)
        target = (lambda _: None) if flow is None else flow.target_topic
        mirrors = [
            topic for topic in self._topics if flow is not None and flow.selection.selects(topic)
        ]
        # Noted before the first record goes there: a running process may produce topics that the
        # file no longer selects.
        mirrors += [topic for topic in noted_targets(self._lake, name)[1] if topic in self._topics]
        if name in self.resends:
            mirrors = list(self._topics)
        return FlowPositions(name, flow_floors(self._lake, name, target), committed, mirrors)

    def _alone(self, name: str, stack: ExitStack) -> dict[TopicAndPartition, GenerationOffset]:
        """The positions of a flow at its target, once no process writes for it any more. Raises
        LeaseTaken, LakeError, ClusterUnusable, KafkaException."""
        flow = self._file.get(name)
        lease = lease_of_flow(self._deployment, name)
        lease.take(sure=True)
        stack.callback(lease.release)
        if runs_elsewhere(self._lake, name, lease):
            raise LeaseTaken(f"another process runs flow {name}")
        tasks = LakeMap(self._lake, name).produce_tasks()
        if tasks is None or (flow is not None and flow.settings.delivery != "exactly_once"):
            return {}  # it never wrote, or does not rebuild map rows
        alias = name.rpartition("->")[2]
        if alias not in self._connections.topology.clusters:
            raise LakeError(f"cluster {alias} of {name} is not in the topology file")
        group = name_at_target(self._lake.lake_id, name)
        client, producer = (self._connections.client(alias, role) for role in ("admin", "producer"))
        places = self._places(name, flow)
        fence_all(
            [
                Target(client, producer, group, f"{group}-{shard}", transactional=True)
                for shard in range(tasks)
            ],
            {topic for topic, _ in places},
        )
        return self._positions(name, client, group, places)

    def _places(
        self, name: str, flow: ResolvedFlow | None
    ) -> dict[TopicAndPartition, TopicAndPartition]:
        """Source partitions by target partition."""
        sources = {(target, key[1]): key for key, target in self._mapped.get(name, {}).items()}
        noted = noted_targets(self._lake, name)[1]
        sources_of = {target: topic for topic, target in noted.items() if topic in self._topics}
        if flow is not None:
            sources_of |= {flow.target_topic(topic): topic for topic in self._topics}
        for topic, info in self._connections.admin(name.rpartition("->")[2]).topics().items():
            if (source := sources_of.get(topic)) is not None:
                sources.update({(topic, at): (source, at) for at in range(info.partitions)})
        return sources

    def _positions(
        self,
        name: str,
        client: Settings,
        group: str,
        places: Mapping[TopicAndPartition, TopicAndPartition],
    ) -> dict[TopicAndPartition, GenerationOffset]:
        """Committed positions by source partition. Raises KafkaException."""
        known = source_generations(self._lake, name)
        return {
            places[key]: known_position(known.ids(places[key]), offset, decode_metadata(metadata))
            for key, (offset, metadata) in committed_by(client, group, places.keys()).items()
        }
