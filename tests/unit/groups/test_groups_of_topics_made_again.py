"""A source topic that was made again, or a log that went back, and of which no operator has
decided: the map leads to offsets of a log that is gone, so no position is moved by it, whichever
way."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.groups import inventory
from mirrorlake.groups.inventory import GroupInventory, take_inventory
from mirrorlake.groups.moves import Standing
from mirrorlake.groups.shared_topics import Route
from mirrorlake.kafka.connections import Connections
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.group_turns import row
from tests.support.lake_rows import FLOW, write_file

TOPICS = ["orders", "payments"]


@pytest.fixture
def source() -> MemoryCluster:
    return MemoryCluster("east", dict.fromkeys(TOPICS, [50]))


@pytest.fixture
def lake(source: MemoryCluster) -> MemoryLake:
    """It has landed both topics as they are."""
    landed = [
        {"topic": name, "partition": None, "topic_id": topic.topic_id}
        for name, topic in source.identities(TOPICS)[0].items()
    ]
    nothing = dict.fromkeys(("living_targets_of", "source_decisions"), ())
    return MemoryLake({**nothing, "generations_of": landed})


@pytest.fixture
def positions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group stands in both topics."""
    standings = tuple(Standing(row(("billing", topic, 0)), True, 0) for topic in TOPICS)
    for way in ("_by_cluster", "_by_checkpoints"):
        monkeypatch.setattr(inventory, way, lambda *_: GroupInventory(standings))


def route_of(lake: MemoryLake, source: MemoryCluster, directory: Path, reverse: bool) -> Route:
    topology = load_topology(write_file(directory))
    clusters: Any = {"east": source, "west": MemoryCluster("west")}
    connections = Connections(topology, clusters)
    return Route(topology.flow(FLOW), reverse, lake=lake, connections=connections)


def taken(
    lake: MemoryLake,
    source: MemoryCluster,
    directory: Path,
    reverse: bool = False,
    gone: str | None = None,
) -> tuple[list[str], list[str]]:
    """The topics of positions that may be moved, and those that are closed."""
    found = take_inventory(route_of(lake, source, directory, reverse), None, gone)
    assert all("at cluster east since it was mirrored" in why for why in found.closed.values())
    return [one.checkpoint.topic for one in found.standings], list(found.closed)


@pytest.mark.usefixtures("positions")
@pytest.mark.parametrize("reverse", [False, True])
def test_no_position_in_it_is_moved(
    lake: MemoryLake, source: MemoryCluster, tmp_path: Path, reverse: bool
) -> None:
    """On the way back the group would skip what the new log has in front of the old offset."""
    assert taken(lake, source, tmp_path, reverse) == (TOPICS, [])
    source.make("orders", 900)
    assert taken(lake, source, tmp_path, reverse) == (["payments"], ["orders"])


@pytest.mark.usefixtures("positions")
@pytest.mark.parametrize("reverse", [False, True])
def test_nor_where_the_source_does_not_say_which_topic_it_has(
    lake: MemoryLake,
    source: MemoryCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reverse: bool,
) -> None:
    """No answer was taken for the same topic. Without moves, what the lake knows counts."""
    asked = source._identities

    def all_but_one(topics: Sequence[str]) -> Any:
        described, missing, _ = asked(topics)
        described.pop("orders", None)
        return described, missing, {}

    monkeypatch.setattr(source, "_identities", all_but_one)
    route = route_of(lake, source, tmp_path, reverse)
    moved = take_inventory(route, None, None)
    assert [one.checkpoint.topic for one in moved.standings] == ["payments"]
    assert "east does not say whether" in moved.closed["orders"]
    assert len(take_inventory(route, None, None, moves=False).standings) == len(TOPICS)


@pytest.mark.usefixtures("positions")
@pytest.mark.parametrize("decision", [(True, None), (False, "stop")])
def test_nor_while_it_waits_or_is_stopped(
    lake: MemoryLake, source: MemoryCluster, tmp_path: Path, decision: tuple[bool, str | None]
) -> None:
    noted = dict(zip(("open", "resolution"), decision, strict=True))
    lake.answers["source_decisions"] = [{"topic": "orders", "kind": "topic_recreated", **noted}]
    assert taken(lake, source, tmp_path) == (["payments"], ["orders"])


@pytest.mark.usefixtures("positions")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("decision", [(True, None), (False, "stop")])
def test_nor_behind_where_a_log_went_back(
    lake: MemoryLake,
    source: MemoryCluster,
    tmp_path: Path,
    decision: tuple[bool, str | None],
    reverse: bool,
) -> None:
    """Up to there it is the log that was mirrored."""
    noted = dict(zip(("open", "resolution"), decision, strict=True))
    noted |= {"topic": "orders", "partition": 0, "kind": "source_rewound"}
    for first, left in ((10, []), (9, ["orders-0"])):  # the group stands at 10
        lake.answers["source_decisions"] = [{**noted, "first_offset": first}]
        moved = [topic for topic in TOPICS if f"{topic}-0" not in left]
        assert taken(lake, source, tmp_path, reverse) == (moved, left)


@pytest.mark.usefixtures("positions")
def test_without_the_source_its_groups_read_on_in_what_is_mirrored(
    lake: MemoryLake, source: MemoryCluster, tmp_path: Path
) -> None:
    source.make("orders", 900)
    assert taken(lake, source, tmp_path, gone="it is gone") == (TOPICS, [])
