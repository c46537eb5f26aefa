"""A source that is gone: each position of its last checkpoints is moved, or named. A target with a
silent leader: no position in its partitions is called exact."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.failover.left_over import left_over, warnings_of
from mirrorlake.groups import inventory, view
from mirrorlake.groups.checkpoint_plan import (
    EXCLUDED,
    GONE,
    NOWHERE,
    OVER,
    Checkpoint,
    GroupPartition,
)
from mirrorlake.groups.moves import NOT_REPORTED, Standing
from mirrorlake.groups.shared_topics import Route
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.groups import GroupPositions, Listing
from mirrorlake.offsets.generations import SourceGenerations
from mirrorlake.offsets.positions import Translated
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.group_turns import Goal, row
from tests.support.lake_rows import FLOW, write_file

KNOWN, OVER_NOW = ("alice", "orders", 0), ("alice", "orders", 2)


def test_none_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partition 2 is one that the target topic got after it was made again: no sample of that knows
    it yet, and what the checkpoint says is of the topic before."""
    now = datetime.now(timezone.utc)
    checkpoints = [row(KNOWN), row(OVER_NOW, reason=OVER)]
    newest = {one.group_partition: (one, now) for one in checkpoints}
    found = by_checkpoints(newest, tmp_path, monkeypatch)
    assert [one.checkpoint.partition for one in found.standings] == [0]
    assert found.lost == {OVER_NOW: 10}


def test_a_group_that_lost_its_positions_of_late_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its coordinator may have lost them in front of all else. Who has left long ago is no news."""
    now = datetime.now(timezone.utc)
    ages = {("alice", "orders", 1): 1, ("bob", "orders", 0): 1, ("carol", "orders", 0): 30}
    newest = {
        place: (row(place, reason=GONE), now - timedelta(days=days)) for place, days in ages.items()
    }
    newest |= {KNOWN: (row(KNOWN), now)}
    found = by_checkpoints(newest, tmp_path, monkeypatch)
    assert [one.checkpoint.group_partition for one in found.standings] == [KNOWN]
    assert list(found.not_moved) == ["bob"]
    route: Any = SimpleNamespace(
        origin="east",
        flow=SimpleNamespace(name=FLOW),
        lake=SimpleNamespace(query_rows=lambda *_, **__: ()),
    )
    (warning,) = warnings_of(route, found)
    assert warning.startswith("group bob is not moved: it is without a position ")


def by_checkpoints(
    newest: Mapping[GroupPartition, tuple[Checkpoint, datetime]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> inventory.GroupInventory:
    """What there is by the last checkpoints, of which the map knows that of partition 0."""
    known = {("orders", 0, 10): Translated("east.orders", 0, 10, exact=True)}
    monkeypatch.setattr(inventory, "newest_checkpoints", lambda *_: newest)
    monkeypatch.setattr(inventory, "source_generations", lambda *_: SourceGenerations(()))
    monkeypatch.setattr(inventory, "sides_of", lambda *_: None)
    monkeypatch.setattr(inventory, "readable_positions", lambda *_: known)
    monkeypatch.setattr(inventory, "bounded", lambda positions, _sides: positions)
    monkeypatch.setattr(inventory, "left_out_groups", lambda *_: defaultdict(dict))
    flow = load_topology(write_file(tmp_path)).flow(FLOW)
    route: Any = SimpleNamespace(lake=None, flow=flow)
    return inventory._by_checkpoints(route, None, "it is gone")


def test_a_named_group_that_does_not_stand_in_the_flows_topics_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the command would end well that has not moved what it was asked for."""
    topology = load_topology(write_file(tmp_path, flows={FLOW: {"topics": ["orders"]}}))
    there = Goal([KNOWN, ("bob", "payments", 0)], 10)
    there.at["carol"] = {}
    monkeypatch.setattr(inventory, "source_generations", lambda *_: SourceGenerations(()))
    monkeypatch.setattr(inventory, "sides_of", lambda *_: None)
    monkeypatch.setattr(inventory, "readable_positions", lambda *_: {})
    connections = SimpleNamespace(groups=lambda _: there)
    route: Any = SimpleNamespace(
        lake=SimpleNamespace(query_rows=lambda *_, **__: ()),
        flow=topology.flow(FLOW),
        connections=connections,
        origin="east",
        goal="west",
        reverse=False,
    )
    found = inventory._by_cluster(route, ["alice", "bob", "carol"])
    assert found.not_moved == dict.fromkeys(["bob", "carol"], NOWHERE)
    left = [line for line in left_over(route, found, [], []) if NOWHERE in line]
    assert [line.split()[1] for line in left] == ["bob", "carol"]
    assert not any(NOWHERE in line for line in warnings_of(route, found))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_group_that_the_settings_leave_out_is_named_both_ways(
    tmp_path: Path, reverse: bool
) -> None:
    """It may have been moved by its name, and would stay there when all others go back."""
    out = {"topics": ["orders"], "groups_exclude": ["billing", "other"]}
    topology = load_topology(write_file(tmp_path, flows={FLOW: out}))
    topics = ("orders", "east.orders")
    clusters: Any = {
        alias: MemoryCluster(alias, {topic: [20]})
        for alias, topic in zip(("east", "west"), topics, strict=True)
    }
    connections = Connections(topology, clusters)
    where = topics[reverse]
    there: Any = Goal([("billing", where, 0), ("other", "payments", 0), ("alice", where, 0)], 10)
    connections._groups["west" if reverse else "east"] = there
    lake: Any = MemoryLake({"living_targets_of": ()})
    route = Route(topology.flow(FLOW), reverse, lake=lake, connections=connections)
    assert inventory._not_moved(route, there.listing(), {}) == {"billing": EXCLUDED}


def test_no_position_is_exact_of_which_the_target_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The map leads there: whether the records are there still, only the partition's leader knows,
    and `failover` leaves such a one."""
    standings = tuple(Standing(row(("alice", "orders", number)), True, 0) for number in (0, 1))
    found = inventory.GroupInventory(standings)
    monkeypatch.setattr(view, "take_inventory", lambda *_, **__: found)
    monkeypatch.setattr(view, "newest_checkpoints", lambda *_: {})
    nothing = SimpleNamespace(listing=lambda: Listing({}), positions=lambda _: GroupPositions({}))
    clusters = {
        "east": MemoryCluster("east", {"orders": [20, 20]}),
        "west": MemoryCluster("west", {"orders": [20, 20]}),
    }
    clusters["west"].silent.add(("orders", 1))
    connections = SimpleNamespace(admin=clusters.__getitem__, groups=lambda _: nothing)
    topology = load_topology(write_file(tmp_path))
    route: Any = SimpleNamespace(
        flow=topology.flow(FLOW), lake=None, connections=connections, origin="east", goal="west"
    )
    monkeypatch.setattr(view, "why_unreachable", lambda _: None)
    groups = view.read_groups(route, None)["groups"]
    assert [(one["exact"], one["reason"]) for one in groups] == [
        (True, None),
        (False, NOT_REPORTED),
    ]
