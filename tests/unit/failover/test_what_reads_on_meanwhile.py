"""A group that reads on at the origin while the lease of who moves groups is waited for is moved to
where it stands by then, and not to where it had stood."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.failover import failover
from mirrorlake.failover.failover import MoveOptions, move_groups
from mirrorlake.groups.inventory import GroupInventory
from mirrorlake.groups.moves import standing_of
from mirrorlake.groups.shared_topics import Direction
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.groups import GroupPositions, Listing
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.offsets.positions import Committed, TopicAndPartition, Translated
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.lake_rows import FLOW, write_file


class Groups:
    """The group of a cluster in memory, without members."""

    def __init__(self) -> None:
        self.held: dict[TopicAndPartition, Committed] = {}

    def listing(self) -> Listing:
        return Listing({"billing": "EMPTY"})

    def positions(self, _groups: Iterable[str]) -> GroupPositions:
        return GroupPositions({"billing": dict(self.held)})

    def move(self, moves: Mapping[str, Mapping[TopicAndPartition, Committed]]) -> dict[Any, str]:
        self.held.update(moves["billing"])
        return {}


@pytest.mark.parametrize("reads", [0, 1], ids=["", "and reads on while it is moved"])
@pytest.mark.parametrize("reverse", [False, True])
def test_it_is_moved_to_where_it_stands_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reverse: bool, reads: int
) -> None:
    """What it reads behind that no move could have known of: then it is not said to be where it
    should be."""
    topology = load_topology(write_file(tmp_path))
    clusters = {
        "east": MemoryCluster("east", {"orders": [99]}),
        "west": MemoryCluster("west", {"east.orders": [99]}),
    }
    connections, goal = Connections(topology, clusters), Groups()
    direction = Direction(topology.flow(FLOW), reverse)
    places = [("orders", 0), ("east.orders", 0)]
    at_origin, at_goal = reversed(places) if reverse else places
    connections._groups[direction.goal] = goal  # type: ignore[assignment]
    origin = Groups()
    connections._groups[direction.origin] = origin  # type: ignore[assignment]
    committed = [5]

    def inventory(*_: object) -> GroupInventory:
        (now,) = committed
        origin.held = {at_origin: Committed(now + reads)}
        there = Translated(*at_goal, now, exact=True)
        return GroupInventory((standing_of(("billing", *at_origin), Committed(now), there),))

    @contextmanager
    def waited(*_: object) -> Iterator[list[str]]:
        committed[0] = 9
        yield ["another host"]

    monkeypatch.setattr(failover, "take_inventory", inventory)
    monkeypatch.setattr(failover, "newest_checkpoints", lambda *_: {})
    monkeypatch.setattr(failover, "append_checkpoints", lambda *_, **__: None)
    monkeypatch.setattr(failover, "sole_mover", waited)
    lake, log = MemoryLake({"open_incidents_of": []}), MemoryLog()
    done = move_groups(Deployment(lake, connections, log), direction, MoveOptions(drain=False))
    assert done["warnings"][:1] == ["another host"]
    assert done["complete"] is (not reads) and bool(done["left"]) is bool(reads)
    assert all("orders-0 (9, now 10): stop its consumers" in sentence for sentence in done["left"])
    assert [row["to_position"] for row in done["groups"]] == [9]
    assert {place: at.offset for place, at in goal.held.items()} == {at_goal: 9}
