"""Ends of logs are asked for once a minute each, and again where a leader did not answer, or where
one has lost records."""

from pathlib import Path

from mirrorlake.groups.logs import ThrottledLogEnds
from mirrorlake.offsets.positions import Committed, TopicAndPartition
from mirrorlake.testing import MemoryCluster
from tests.support.group_turns import Turn

PLACE = ("orders", 0)
PLACES = [("east.orders", 0), ("east.orders", 1)]


def test_each_end_is_asked_for_once_a_minute() -> None:
    now, cluster = [100.0], MemoryCluster("west", {"east.orders": [7, 5]})
    ends = ThrottledLogEnds(cluster, lambda: now[0])
    assert ends.of(PLACES[:1]) == {PLACES[0]: 7}
    now[0] += 30
    assert ends.of(PLACES) == {PLACES[1]: 5}
    now[0] += 29
    assert ends.of(PLACES) == {}
    assert cluster.asked["end_offsets"] == 3
    now[0] += 1
    assert ends.of(PLACES) == {PLACES[0]: 7}


def test_a_leader_that_did_not_answer_is_asked_the_next_time() -> None:
    cluster = MemoryCluster("west", {"east.orders": [7, 5]})
    ends = ThrottledLogEnds(cluster, lambda: 100.0)
    cluster.silent = {PLACES[1]}
    assert ends.of(PLACES) == {PLACES[0]: 7}
    cluster.silent = set()
    assert ends.of(PLACES) == {PLACES[1]: 5}


def test_a_loss_that_the_flow_has_noticed_is_looked_at_at_once(tmp_path: Path) -> None:
    """Within a minute the log can grow beyond a group that stood behind what was lost: it would
    skip what came there meanwhile."""
    turn = Turn(tmp_path, [("alice", "orders", 0)])
    turn.target.at["alice"][PLACE] = Committed(50)
    turn.groups.target.sync()
    assert seen(turn) == {PLACE: 100}
    turn.cluster.ends["orders"][0] = 30
    turn.groups.target.sync()
    assert seen(turn) == {}, "a minute is not over"
    turn.running.lost = 1
    turn.groups.source.checkpoint()
    turn.groups.target.sync()
    assert seen(turn) == {PLACE: 30}


def seen(turn: Turn) -> dict[TopicAndPartition, int]:
    """The ends by which the newest turn decided what becomes of the group."""
    return dict(turn.groups.target._at_target[1]["alice"].ends)
