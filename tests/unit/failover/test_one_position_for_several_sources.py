"""What one position of a group at the target does not say is named: of a topic that several sources
are mirrored into, and of one that the flow has left for another."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.failover.left_over import left_over, unread_of_others
from mirrorlake.groups.checkpoint_plan import GONE, Checkpoint
from mirrorlake.groups.checkpoint_table import append_checkpoints
from mirrorlake.groups.inventory import GroupInventory
from mirrorlake.groups.moves import MoveOutcome, MoveResult, Standing
from mirrorlake.groups.shared_topics import Direction, Route
from mirrorlake.groups.sync_plan import HAS_READ_ON
from mirrorlake.offsets.positions import Committed
from tests.support.group_turns import row
from tests.support.lake_rows import FLOW, no_session, opened, write_file

OTHER = "north->west"
HERE = ("billing", "orders", 0)


def left(
    directory: Path,
    theirs: Checkpoint,
    done: MoveOutcome = "moved",
    policy: str = "identity",
    *,
    before: int | None = None,
    reverse: bool = False,
) -> list[str]:
    flows = {name: {"policy": policy} for name in (FLOW, OTHER, "west->north")}
    lake, topology = opened(no_session, write_file(directory, flows=flows))
    append_checkpoints(lake, OTHER, [theirs], newest=None)
    connections: Any = SimpleNamespace(topology=topology)
    route = Route(topology.flow(FLOW), reverse, lake=lake.now, connections=connections)
    standing = Standing(row(HERE, 50), exact=True, again=0)
    at = None if before is None else Committed(before)
    return unread_of_others(route, [MoveResult(standing, done, at, HAS_READ_ON)])


@pytest.mark.parametrize(("done", "before"), [("moved", None), ("would move", 3), ("there", 60)])
def test_what_it_has_not_read_at_another_source_is_named(
    tmp_path: Path, done: MoveOutcome, before: int | None
) -> None:
    (sentence,) = left(tmp_path, row(HERE, 20), done, before=before)
    at = 60 if done == "there" else 50
    assert sentence.startswith(
        f"group billing, orders-0: at {at}, and by what it has read on north at 20 (flow {OTHER}):"
    )


@pytest.mark.parametrize(
    "theirs",
    [
        row(HERE, 50),
        row(HERE, 70),
        row(("audit", "orders", 0), 20),
        row(("billing", "orders", 1), 20),
        row(HERE, 20, reason=GONE),
    ],
)
def test_what_it_has_read_there_as_well_is_not(tmp_path: Path, theirs: Checkpoint) -> None:
    assert left(tmp_path, theirs) == []


@pytest.mark.parametrize(
    "more", [{"policy": "default"}, {"done": "kept"}, {"done": "failed"}, {"reverse": True}]
)
def test_nor_where_nothing_is_shared_or_moved(tmp_path: Path, more: dict[str, Any]) -> None:
    assert left(tmp_path, row(HERE, 20), **more) == []


def test_who_reads_on_in_the_topic_of_an_earlier_policy_is_named(tmp_path: Path) -> None:
    """Behind what is unread there, more is in the topic of now, where the group stands nowhere."""
    flow = load_topology(write_file(tmp_path)).flow(FLOW)
    standing = Standing(row(HERE, 50), exact=True, again=0)
    result = MoveResult(standing, "moved", None)
    (sentence,) = left_over(Direction(flow), GroupInventory(()), [result], [])
    assert sentence.startswith("group billing, orders-0:") and "is in east.orders" in sentence
    assert left_over(Direction(flow, reverse=True), GroupInventory(()), [result], []) == []
