"""A drain is complete by what the source was seen to have."""

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.failover import drain
from mirrorlake.kafka.connections import Connections
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.lake_rows import FLOW, write_file

ORDERS = ("orders", 0)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    monkeypatch.setattr(drain, "OPEN_SECONDS", 0.0)
    return MemoryCluster("east", {"orders": [7, 5]})


def ends(
    source: MemoryCluster, directory: Path, mirrored: Collection[str] = ()
) -> tuple[dict[TopicAndPartition, int], list[str], list[str]]:
    topology = load_topology(write_file(directory, flows={FLOW: {"topics": ["orders", "lost"]}}))
    clusters: Any = {"east": source, "west": MemoryCluster("west", {})}
    return drain._ends(Connections(topology, clusters), topology.flow(FLOW), mirrored)


def test_all_that_is_there(source: MemoryCluster, tmp_path: Path) -> None:
    assert ends(source, tmp_path) == ({ORDERS: 7, ("orders", 1): 5}, [], [])


def test_a_leader_that_did_not_say_where_its_log_ends(
    source: MemoryCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last stable offset alone, which it told a moment later, shows no transaction that is
    open."""
    source.open_at[ORDERS] = 4
    asked = source.end_offsets

    def silent_at_first(keys: Collection[TopicAndPartition], **how: bool) -> object:
        source.silent = set() if how.get("committed", True) else {ORDERS}
        return asked(keys, **how)

    monkeypatch.setattr(source, "end_offsets", silent_at_first)
    found, held, silent = ends(source, tmp_path)
    assert (found[ORDERS], held, silent) == (4, [], ["orders-0"])


def test_a_topic_that_may_not_be_seen_any_more(
    source: MemoryCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it got since it was mirrored is not known; of one that was deleted nothing is left."""
    monkeypatch.setattr(MemoryCluster, "client", None)
    monkeypatch.setattr(drain, "hidden", lambda _client, topics: topics & {"lost"})
    assert ends(source, tmp_path, ["orders", "lost"])[2] == ["lost"]
    assert ends(source, tmp_path, ["orders", "other"])[2] == []


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[dict[TopicAndPartition, int]]:
    """Another process runs the flow, and is at the ends that it was waited for to come to."""
    waited: list[dict[TopicAndPartition, int]] = []

    def wait(_lake: object, _flow: object, ends: dict[TopicAndPartition, int]) -> list[str]:
        waited.append(ends)
        return []

    monkeypatch.setattr(drain, "_is_free", lambda *_: (False, None))
    monkeypatch.setattr(drain, "_wait", wait)
    return waited


def deployed(
    source: MemoryCluster, directory: Path, settings: Mapping[str, Any] = MappingProxyType({})
) -> Any:
    """A flow that has mirrored all topics of its source."""
    topics = source.identities(sorted(source.ends))[0]
    landed = [
        {"topic": name, "partition": None, "topic_id": topic.topic_id}
        for name, topic in topics.items()
    ]
    target = MemoryCluster("west", {f"east.{name}": ends for name, ends in source.ends.items()})
    mirrors = target.identities(sorted(target.ends))[0]
    living = [
        {"topic": name[5:], "target_topic": name, "target_generation": 0, "lives": True}
        | {"topic_id": topic.topic_id}
        for name, topic in mirrors.items()
    ]
    answers: Any = {"generations_of": landed, "living_targets_of": living, "source_decisions": ()}
    topology = load_topology(write_file(directory, flows={FLOW: {"topics": [".*"], **settings}}))
    clusters: Any = {"east": source, "west": target}
    connections = Connections(topology, clusters)
    return SimpleNamespace(lake=MemoryLake(answers), connections=connections)


@pytest.mark.parametrize("partition", [False, True], ids=["made again", "went back"])
def test_another_log_than_was_mirrored(
    source: MemoryCluster,
    tmp_path: Path,
    elsewhere: list[dict[TopicAndPartition, int]],
    partition: bool,
) -> None:
    """Its end lies in front of what was mirrored of the one before, and nothing of it is mirrored:
    another process runs the flow, and waits for a decision."""
    source.make("payments", 9)
    deployment = deployed(source, tmp_path)
    flow = deployment.connections.topology.flow(FLOW)
    assert drain.drain(deployment, flow).complete
    if partition:
        lost = {"topic": "payments", "partition": 0, "first_offset": 2, "open": True}
        lost |= {"resolution": None, "kind": "source_rewound"}
        deployment.lake.answers["source_decisions"] = [lost, {**lost, "topic": "of another flow"}]
    else:
        source.make("payments", 3)
    drained = drain.drain(deployment, flow)
    name, why = ("payments-0", "its log went") if partition else ("payments", "it was made again")
    assert (drained.complete, drained.missing) == (False, (name,))
    assert drained.detail is not None and f"topic {name}: {why}" in drained.detail
    assert elsewhere[-1] == {ORDERS: 7, ("orders", 1): 5}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"enabled": False}, "disabled"),
        ({"paused": True}, "paused"),
        ({"paused": ["o.*"]}, "paused"),
    ],
)
def test_what_rests_is_not_complete_in_front_of_its_end(
    source: MemoryCluster,
    tmp_path: Path,
    elsewhere: list[dict[TopicAndPartition, int]],
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    why: str,
) -> None:
    """Nobody brings it there, and groups were said to have all."""
    source.make("payments", 9)
    deployment = deployed(source, tmp_path, settings)
    flow = deployment.connections.topology.flow(FLOW)
    behind = {"orders-1"}
    monkeypatch.setattr(drain, "known_heartbeats", lambda *_: lambda topic: topic == "payments")
    monkeypatch.setattr(
        drain,
        "_missing",
        lambda _, ends: sorted(behind & {f"{topic}-{number}" for topic, number in ends}),
    )
    drained = drain.drain(deployment, flow)
    assert (drained.complete, drained.missing) == (False, ("orders-1",))
    assert drained.detail is not None and drained.detail.endswith(why)
    assert elsewhere == ([] if why == "disabled" or flow.paused else [{("payments", 0): 9}])
    behind.clear()
    assert drain.drain(deployment, flow).complete


def test_a_log_of_which_is_told_only_while_the_process_that_runs_the_flow_is_waited_for(
    source: MemoryCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went back, and its end is one that the map has of the log before: nothing was waited
    for."""
    deployment = deployed(source, tmp_path)
    lost = {"topic": "orders", "partition": 1, "first_offset": 2, "open": True}

    def wait(*_: object) -> list[str]:
        rows = [{**lost, "resolution": None, "kind": "source_rewound"}]
        deployment.lake.answers["source_decisions"] = rows
        return []

    monkeypatch.setattr(drain, "_is_free", lambda *_: (False, None))
    monkeypatch.setattr(drain, "_wait", wait)
    drained = drain.drain(deployment, deployment.connections.topology.flow(FLOW))
    assert (drained.complete, drained.missing) == (False, ("orders-1",))


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made again"])
def test_a_mirror_that_is_not_there_any_more(
    source: MemoryCluster,
    tmp_path: Path,
    elsewhere: list[dict[TopicAndPartition, int]],
    again: bool,
) -> None:
    """Nobody has noticed it yet, and the map says that it has all."""
    deployment = deployed(source, tmp_path)
    target: Any = deployment.connections.admin("west")
    target.delete("east.orders")
    if again:
        target.make("east.orders", 0, 0)
    drained = drain.drain(deployment, deployment.connections.topology.flow(FLOW))
    assert (drained.complete, drained.missing) == (False, ("orders",))
    assert drained.detail is not None and "east.orders at cluster west is gone" in drained.detail
