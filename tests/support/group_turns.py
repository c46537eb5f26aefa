"""Turns of the control task of groups, over a cluster and a lake in memory."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mirrorlake.config.topology import load_topology
from mirrorlake.groups.checkpoint_plan import Checkpoint
from mirrorlake.groups.group_sync import GroupTurns
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.groups import GroupPositions, Listing
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.other_logs import OtherLogs
from mirrorlake.lake.reader import Frames, QueryRows
from mirrorlake.offsets.positions import Committed, Reached, TopicAndPartition
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.lake_rows import FLOW, write_file

Key = tuple[str, str, int]


def row(key: Key, position: int = 10, **others: Any) -> Checkpoint:
    return Checkpoint(*key, position, target_topic=key[1], target_position=position, **others)


class Goal:
    """A cluster with groups: what they committed, how they stand."""

    def __init__(self, all_keys: Iterable[Key], position: int | None) -> None:
        self.at: dict[str, dict[TopicAndPartition, Committed]] = {}
        for group, *place in all_keys:
            at = {} if position is None else {tuple(place): Committed(position)}
            self.at.setdefault(group, {}).update(at)  # type: ignore[arg-type]

    def listing(self) -> Listing:
        return Listing(dict.fromkeys(self.at, "EMPTY"))

    def other_kinds(self, _: Listing) -> frozenset[str]:
        return frozenset()

    def positions(self, groups: Iterable[str]) -> GroupPositions:
        return GroupPositions({group: dict(self.at[group]) for group in groups if group in self.at})

    def move(
        self, moves: Mapping[str, Mapping[TopicAndPartition, Committed]]
    ) -> dict[tuple[str, str, int], str]:
        for group, positions in moves.items():
            self.at[group].update(positions)
        return {}


class Running:
    """A running flow, whose partitions are all landed in one generation."""

    def __init__(self, generation: int = 0, target_generation: int = 0) -> None:
        self.landed, self.target = generation, target_generation
        self.again: set[str] = set()
        self.back: dict[TopicAndPartition, int] = {}
        self.lost = self.passed = 0

    def mirrors(self, _: str) -> bool:
        return True

    def refuses(self, _: str) -> bool:
        return False

    def losses(self) -> int:
        return self.lost

    def passes_over(self) -> int:
        return self.passed

    def other_logs(self) -> OtherLogs:
        return OtherLogs("east", frozenset(self.again), dict(self.back))

    def generation(self, _: TopicAndPartition) -> int:
        return self.landed

    def generations(self) -> int:
        return self.landed

    def target_generation(self, _: str) -> int | None:
        return self.target

    def check_targets(self) -> None:
        """They are as they were."""

    def reached(self, _: object) -> dict[TopicAndPartition, Reached] | None:
        return None


class Mapped(MemoryLake):
    """A lake whose map leads every position to the same one, and knows them up to 20."""

    def query_rows(self, name: str, frames: Frames | None = None, **args: object) -> QueryRows:
        if name != "translate_forward" or frames is None:
            return super().query_rows(name, frames, **args)
        asked: Any = frames["asked"]
        names = ("asked_topic", "partition", "asked_offset", "topic", "offset")
        common = {"exact": True, "ahead": True, "mapped": True, "known": True, "mapped_end": 20}
        return QueryRows(
            {**common, **dict(zip(names, (*one, one[0], one[2]), strict=True))}
            for one in asked.rows
        )


class Turn:
    """The groups of a flow after a turn in which all stood at 10; the target has none of them."""

    def __init__(self, tmp_path: Path, all_keys: list[Key], running: Running | None = None) -> None:
        # names stay, as `Mapped` has it
        topology = load_topology(write_file(tmp_path, flows={FLOW: {"policy": "identity"}}))
        places = {topic: [100] * 300 for _, topic, _ in all_keys}
        self.cluster: Any = MemoryCluster("east", places)
        connections = Connections(topology, dict.fromkeys(topology.clusters, self.cluster))
        self.source, self.target = Goal(all_keys, 10), Goal(all_keys, None)
        groups: Any = {"east": self.source, "west": self.target}
        connections.groups = groups.__getitem__  # type: ignore[method-assign]
        lake = Mapped(dict.fromkeys(("newest_checkpoints", "mapped_ends"), ()))
        names = ("left_out_groups", "generation_begins", "living_targets_of")
        passed_over = ("starts_of", "mirror_incidents", "parked_waiting")
        lake.answers.update(dict.fromkeys((*names, *passed_over), ()))
        self.lake = lake
        deployment = Deployment(lake, connections, MemoryLog())  # type: ignore[arg-type]
        self.running = running or Running()
        published: Any = SimpleNamespace(publish=list)
        flow = topology.flow(FLOW)
        self.begin = partial(GroupTurns, flow, deployment, self.running, published)
        self.groups = self.begin()
        assert len(self.groups.source.checkpoint()) == len(all_keys)

    def all_stand_at(self, position: int | None) -> "Turn":
        for positions in self.source.at.values():
            moved = {} if position is None else dict.fromkeys(positions, Committed(position))
            positions.clear()
            positions.update(moved)
        return self
