"""A position is moved to where the goal has been seen to have its log, and else it is left."""

from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import ClusterUnreachable
from mirrorlake.failover import failover
from mirrorlake.groups import logs, mover, view
from mirrorlake.groups.checkpoint_plan import trimmed_reason
from mirrorlake.groups.inventory import GroupInventory, _mirrors
from mirrorlake.groups.moves import NOT_REPORTED, MoveResult, standing_of
from mirrorlake.groups.shared_topics import Route
from mirrorlake.groups.sync_plan import TargetGroup
from mirrorlake.kafka.connections import Connections
from mirrorlake.offsets.positions import Committed, Translated
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.lake_rows import FLOW, write_file

MIRROR = "east.orders"


def planned(
    monkeypatch: pytest.MonkeyPatch,
    west: MemoryCluster,
    to: Collection[Translated],
    force: bool = False,
) -> dict[int, MoveResult]:
    """By partition, what is planned for a group whose position leads to these ones at `west`."""
    monkeypatch.setattr(failover, "newest_checkpoints", lambda *_: {})
    monkeypatch.setattr(
        mover,
        "target_groups",
        lambda _admin, names, starts: ({name: TargetGroup(None, {}, starts) for name in names}, {}),
    )
    clusters = SimpleNamespace(admin=lambda _: west, groups=lambda _: None)
    route: Any = SimpleNamespace(
        connections=clusters,
        goal="west",
        lake=None,
        flow=SimpleNamespace(name="east->west"),
        reverse=False,
    )
    standings = tuple(
        standing_of(("billing", "orders", one.partition), Committed(9), one) for one in to
    )
    results, _ = failover._planned(route, GroupInventory(standings), force)
    return {result.standing.checkpoint.partition: result for result in results}


@pytest.mark.parametrize("force", [False, True])
def test_where_a_leader_does_not_answer_a_position_is_left(
    monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    """Retention may have taken what it points to: its consumers would skip all that is there."""
    west = MemoryCluster("west", {MIRROR: [20, 20]})
    west.silent.add((MIRROR, 1))
    to = [Translated(MIRROR, number, 4, exact=True) for number in (1, 0)]
    done = planned(monkeypatch, west, to, force)
    assert (done[0].done, done[0].to_position, done[0].is_left) == ("would move", 4, False)
    assert done[1].done == ("would move" if force else "failed")
    assert done[1].is_left is not force


@pytest.mark.parametrize(
    ("start", "end", "ahead", "to", "lacks"),
    [
        (0, 20, True, 4, (0, 0)),
        (7, 20, True, 7, (3, 0)),
        (7, 20, False, 7, (0, 0)),
        (0, 3, True, 3, (0, 1)),
    ],
    ids=["as it was", "trimmed", "trimmed in front of no record", "cut"],
)
def test_a_log_that_is_another_one_since_the_position_was_translated(
    monkeypatch: pytest.MonkeyPatch,
    start: int,
    end: int,
    ahead: bool,
    to: int,
    lacks: tuple[int, int],
) -> None:
    """Or of which the goal said nothing then: the move was called exact."""
    west = MemoryCluster("west", {MIRROR: [end]})
    west.starts[MIRROR, 0] = start
    done = planned(monkeypatch, west, [Translated(MIRROR, 0, 4, exact=True, ahead=ahead)])[0]
    assert (done.done, done.to_position) == ("would move", to)
    assert (done.standing.gone, done.standing.cut) == lacks
    assert done.is_left is any(lacks) is not done.document()["exact"]
    reason = done.standing.checkpoint.reason
    assert reason == (trimmed_reason(lacks[0]) if lacks[0] else None)


def test_on_the_way_back_a_mirror_counts_whose_topic_the_source_does_not_show(
    tmp_path: Path,
) -> None:
    """Its groups were left where they are, and nothing said so."""
    topology = load_topology(write_file(tmp_path, flows={FLOW: {"topics": ["orders.*"]}}))
    clusters: Any = {
        "east": MemoryCluster("east", {"orders": [1]}),
        "west": MemoryCluster("west", {}),
    }
    rows: list[dict[str, Any]] = [
        {"topic": topic, "target_topic": target, "target_generation": 0, "topic_id": "", "lives": 1}
        for topic, target in (
            ("orders-gone", "east.orders-gone"),
            ("orders-old", "named-by-another-policy"),
            ("payments", "east.payments"),
        )
    ]
    lake: Any = MemoryLake({"living_targets_of": rows})
    route = Route(topology.flow(FLOW), True, lake=lake, connections=Connections(topology, clusters))
    asked = {"east.orders", "other", *(row["target_topic"] for row in rows)}
    assert _mirrors(route, asked) == {"east.orders", "east.orders-gone"}


def test_nothing_is_called_exact_where_the_target_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Retention may have taken what positions lead to, as where one leader does not answer."""
    error = ClusterUnreachable("cluster west does not answer", alias="west")
    to = Translated("east.orders", 0, 1, exact=True)
    standing = standing_of(("billing", "orders", 0), Committed(9), to)
    monkeypatch.setattr(view, "take_inventory", lambda *_, **__: GroupInventory((standing,)))
    monkeypatch.setattr(view, "why_unreachable", lambda _: None)
    monkeypatch.setattr(view, "newest_checkpoints", lambda *_: {})
    monkeypatch.setattr(logs, "ends", lambda *_: {})

    def silent() -> None:
        raise error

    target = SimpleNamespace(listing=silent)
    route: Any = SimpleNamespace(
        connections=SimpleNamespace(admin=lambda _: None, groups=lambda _: target),
        goal="west",
        lake=None,
        flow=SimpleNamespace(name="east->west", source="east", target="west"),
        reverse=False,
    )
    told = view.read_groups(route, None)
    assert told["target_unreachable"] == str(error)
    assert [(row["exact"], row["reason"]) for row in told["groups"]] == [(False, NOT_REPORTED)]
