"""A flow of which a cluster does not answer is not planned, and no plan says that it does
nothing."""

from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from typer.testing import CliRunner

import mirrorlake
from mirrorlake.checks import preflight
from mirrorlake.cli.main import app
from mirrorlake.config.topology import load_topology
from mirrorlake.control.topic_comparison import compare_topics
from mirrorlake.errors import ClusterUnreachable, TopologyError
from mirrorlake.kafka.connections import Connections
from mirrorlake.library.answers import Plan
from mirrorlake.run import plan, unseen
from mirrorlake.run.plan_totals import NothingStaged, flow_totals
from mirrorlake.run.totals import Totals
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import write_file

WHY = "cluster north does not answer at 127.0.0.1:1"
TOTALS = Totals(topics=2, offsets_at_source=5)


def document(directory: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Of two flows from one source; a target does not answer, and the other flow is as planned."""
    flows = {"east->west": {}, "east->north": {}}
    topology = load_topology(write_file(directory, flows=flows))
    clusters: Any = {alias: MemoryCluster(alias) for alias in topology.clusters}
    clusters["north"].refusal = ClusterUnreachable(WHY, alias="north")
    for name in ("access_problems", "own_topic_problems"):
        monkeypatch.setattr(preflight, name, lambda *_: [])
    monkeypatch.setattr(plan, "_held", lambda *_: plan._Held())
    monkeypatch.setattr(plan, "limit_problems", lambda *_: [])
    monkeypatch.setattr(plan, "_differences", lambda *_: {"totals": vars(TOTALS)})
    return plan.make_plan(Connections(topology, clusters), topology.active_flows())


def test_it_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = document(tmp_path, monkeypatch)
    assert {flow["flow"]: flow["unasked"] for flow in planned["flows"]} == {
        "east->west": None,
        "east->north": WHY,
    }
    totals = planned["totals"]
    assert (totals["topics"], totals["offsets_at_source"]) == (2, None), "it may be any number more"


def test_the_command_shows_it_and_exits_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = document(tmp_path, monkeypatch)
    answer = Plan.from_document(planned)
    monkeypatch.setattr(mirrorlake.OpenLake, "plan", lambda *_: answer)
    ended = CliRunner().invoke(app, ["-c", str(tmp_path / "mirrorlake.yml"), "plan"])
    assert ended.exit_code == 1
    assert f"not planned: {WHY}" in " ".join(ended.output.split())
    assert "no topic to mirror" in ended.output, "of the other one"


def test_clusters_are_asked_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that are away took twice the time of one."""
    both = Barrier(2)
    monkeypatch.setattr(MemoryCluster, "cluster_id", lambda self: (both.wait(5), self.alias)[1])
    topology = load_topology(write_file(tmp_path))
    clusters: Any = {alias: MemoryCluster(alias) for alias in topology.clusters}
    for name in ("access_problems", "own_topic_problems", "member_problems"):
        monkeypatch.setattr(preflight, name, lambda *_: [])
    connections = Connections(topology, clusters)
    ids = preflight.check(None, connections, topology.active_flows()).ids
    assert ids == {"east": "east", "west": "west"}


def test_a_reference_without_a_value_waits_for_no_cluster(tmp_path: Path) -> None:
    """Where the other cluster was away, that was waited for first."""
    addresses = {"east": "127.0.0.1:1", "west": "${env:MIRRORLAKE_NOT_SET}"}
    clusters = {alias: {"bootstrap_servers": one} for alias, one in addresses.items()}
    topology = load_topology(write_file(tmp_path, clusters=clusters))
    east = MemoryCluster("east")
    with pytest.raises(TopologyError, match="MIRRORLAKE_NOT_SET is not set"):
        preflight.check(None, Connections(topology, {"east": east}), topology.active_flows())  # type: ignore[dict-item]
    assert not east.asked


def test_what_a_leader_does_not_tell_is_not_known(tmp_path: Path) -> None:
    topology = load_topology(write_file(tmp_path))
    east = MemoryCluster("east", {"orders": [5, 7]})
    clusters: Any = {"east": east, "west": MemoryCluster("west")}
    connections, flow = Connections(topology, clusters), topology.flow("east->west")
    plans = compare_topics(flow, connections, None, east.topics())
    assert flow_totals(connections, flow, plans, NothingStaged()).offsets_at_source == 12
    east.silent = {("orders", 1)}
    assert flow_totals(connections, flow, plans, NothingStaged()).offsets_at_source is None


def test_a_partition_whose_leader_is_silent_may_have_what_is_not_staged() -> None:
    """`plan` ended with a traceback where a flow that was away has a compacted topic there."""
    source = MemoryCluster("east", {"new": [9], "all": [5], "silent": [5]})
    source.silent = {("silent", 0)}
    places = [(topic, 0) for topic in source.ends]
    staged = {("all", 0): 5, ("new", 0): 5, ("silent", 0): 5}
    assert unseen._not_staged(source, places, staged) == {"new", "silent"}  # type: ignore[arg-type]
