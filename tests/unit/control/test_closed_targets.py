"""Whether target topics are still those that a flow wrote to: what the target does not say of them
is no answer by which groups are moved, and a view goes on with what the lake knows."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.config.topology import load_topology
from mirrorlake.control.closed_topics import closed_targets
from mirrorlake.errors import ClusterUnreachable, ClusterUnusable
from mirrorlake.groups import inventory
from mirrorlake.groups.inventory import GroupInventory, take_inventory
from mirrorlake.groups.moves import Standing
from mirrorlake.groups.shared_topics import Route
from mirrorlake.kafka.connections import Connections
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.group_turns import row
from tests.support.lake_rows import FLOW, write_file

ERRORS = [
    ClusterUnreachable("cluster west does not answer", alias="west"),
    KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT, "cluster west does not say")),
]


@pytest.fixture
def target() -> MemoryCluster:
    return MemoryCluster("west", {"east.orders": [20], "east.payments": [20]})


@pytest.fixture
def route(target: MemoryCluster, tmp_path: Path) -> Route:
    """Of a flow that has mirrored two topics into those that the target has."""
    living = [
        {"topic": name[5:], "target_topic": name, "target_generation": 0, "lives": True}
        | {"topic_id": topic.topic_id}
        for name, topic in target.identities(sorted(target.ends))[0].items()
    ]
    nothing = dict.fromkeys(("source_decisions", "generations_of"), ())
    lake: Any = MemoryLake({**nothing, "living_targets_of": living})
    topology = load_topology(write_file(tmp_path))
    source = MemoryCluster("east", {"orders": [20], "payments": [20]})
    clusters: Any = {"east": source, "west": target}
    return Route(topology.flow(FLOW), lake=lake, connections=Connections(topology, clusters))


def closed(route: Route, sure: bool = True) -> dict[str, str]:
    return closed_targets(route.lake, route.connections, route.flow, sure)


def refuse(monkeypatch: pytest.MonkeyPatch, target: MemoryCluster, error: Exception) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(target, "_identities", fails)


def test_those_that_are_there_are_open(route: Route, target: MemoryCluster) -> None:
    assert closed(route) == closed(route, False) == {}
    target.make("east.orders", 0)
    assert list(closed(route)) == list(closed(route, False)) == ["orders"]


@pytest.mark.parametrize("error", ERRORS)
def test_a_target_that_does_not_answer_has_not_said_that_they_are_there(
    route: Route, target: MemoryCluster, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    refuse(monkeypatch, target, error)
    with pytest.raises(ClusterUnusable, match="cluster west does not"):
        closed(route)
    assert closed(route, False) == {}


def test_nor_one_that_does_not_describe_one_of_them(
    route: Route, target: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = target._identities

    def all_but_one(topics: list[str]) -> Any:
        described, missing, _ = asked(topics)
        described.pop("east.orders")
        return described, missing, {}

    monkeypatch.setattr(target, "_identities", all_but_one)
    assert list(closed(route)) == ["orders"] and "does not say whether" in closed(route)["orders"]
    assert closed(route, False) == {}


@pytest.mark.parametrize("error", ERRORS)
def test_no_group_is_moved_then_and_all_are_shown(
    route: Route, target: MemoryCluster, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    standings = (Standing(row(("billing", "orders", 0)), True, 0),)
    monkeypatch.setattr(inventory, "_by_cluster", lambda *_: GroupInventory(standings))
    assert take_inventory(route, None, None).standings == standings
    refuse(monkeypatch, target, error)
    with pytest.raises(ClusterUnusable, match="cluster west does not"):
        take_inventory(route, None, None)
    assert take_inventory(route, None, None, moves=False).standings == standings
