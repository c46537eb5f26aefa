"""A flow that could not be brought to its end before groups move is named, whatever the reason."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import ClusterUnreachable, MirrorlakeError, ReplicationError
from mirrorlake.failover import drain, failover
from mirrorlake.failover.failover import _drained
from mirrorlake.failover.left_over import Drained, left_over
from mirrorlake.groups.inventory import GroupInventory
from mirrorlake.groups.shared_topics import Direction
from tests.support.lake_rows import FLOW, write_file


@pytest.mark.parametrize(
    "error",
    [ClusterUnreachable("cluster east does not answer", alias="east"), ReplicationError("lost")],
)
def test_what_ends_a_drain_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: MirrorlakeError
) -> None:
    """A cluster that answered a moment ago may not do so any more: then nothing is known of what it
    has and the target has not."""

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(drain, "drain", fails)
    flow = load_topology(write_file(tmp_path)).flow(FLOW)
    nothing: Any = None
    drained = _drained(nothing, flow)
    assert drained is not None and not drained.complete
    left = left_over(SimpleNamespace(origin="east"), GroupInventory(()), [], [drained])  # type: ignore[arg-type]
    assert left == [f"flow {FLOW} was not drained: {error}"]


@pytest.mark.parametrize("policy", ["identity", "default"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("rests", [{}, {"paused": True}, {"enabled": False}])
def test_who_shares_names_with_it_is_brought_up_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    policy: str,
    reverse: bool,
    rests: dict[str, bool],
) -> None:
    """Whether records of the goal lie in front of a position is known by the flow that brings them
    to the origin. What one has not brought that is paused is named by its drain."""
    flows = {FLOW: {"policy": policy}, "west->east": {"policy": policy, **rests}}
    topology = load_topology(write_file(tmp_path, flows=flows))
    brought: list[str] = []

    def drained(_: object, flow: Any) -> Drained:
        brought.append(flow.name)
        return Drained(flow.name, True)

    monkeypatch.setattr(failover, "_drained", drained)
    deployment: Any = SimpleNamespace(connections=SimpleNamespace(topology=topology))
    told = failover._catch_up(deployment, Direction(topology.flow(FLOW), reverse))
    both = (reverse or policy == "identity") and "enabled" not in rests
    assert brought == ([FLOW, "west->east"] if both else [FLOW])
    assert [one.flow for one in told] == brought


@pytest.mark.parametrize("reverse", [False, True])
def test_what_the_opposite_flow_lacks_is_named(reverse: bool) -> None:
    """On the way there it leaves something only where a position is not exact for it."""
    lake = SimpleNamespace(query_rows=lambda *_, **__: ())
    ends = ("west", "east") if reverse else ("east", "west")
    route: Any = SimpleNamespace(
        flow=SimpleNamespace(name=FLOW), lake=lake, reverse=reverse, origin=ends[0], goal=ends[1]
    )
    drained = [Drained(FLOW, True), Drained("west->east", False, detail="east is away")]
    told = failover._document(route, GroupInventory(()), [], drained)
    sentences = ["flow west->east was not drained: east is away"]
    named = (told["warnings"], told["left"])
    assert named == (([], sentences) if reverse else (sentences, []))
    assert told["complete"] is not reverse and len(told["drained"]) == 2
