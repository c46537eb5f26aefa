"""Whose what a target topic holds already is, and what follows from it."""

import time

import pytest

from mirrorlake.checks.holdings import (
    LIVE_SECONDS,
    Holding,
    holding_problems,
    holdings,
    other_maker,
)
from mirrorlake.checks.preflight import Preflight, second_writers
from mirrorlake.config.topology import Topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.testing import MemoryCluster

SYNCS = "mm2-offset-syncs.west.internal"


def two(separator: str = ".") -> tuple[Connections, MemoryCluster, MemoryCluster]:
    east = MemoryCluster(
        "east", {"orders": [5], "audit": [1, 2], "fresh": [1], "empty": [0], SYNCS: [9]}
    )
    west = MemoryCluster(
        "west", {"east.orders": [7], "east.audit": [3, 4], "east.empty": [0], "east.loose": [9]}
    )
    west.starts["east.audit", 1] = 2
    document = {
        "clusters": {name: {"bootstrap_servers": "x:1"} for name in ("east", "west")},
        "lake": {"path": "./lake"},
        "defaults": {"replication_policy_separator": separator},
        "flows": {"east->west": {"topics": ["orders", "audit", "fresh", "empty"]}},
    }
    topology = Topology.model_validate(document)
    return Connections(topology, {"east": east, "west": west}), east, west


def running(east: MemoryCluster, age: float) -> None:
    east.newest[SYNCS, 0] = int((time.time() - age) * 1000)


def test_each_topic_is_somebodys() -> None:
    connections, east, west = two()
    flow = connections.topology.flow("east->west")
    held = holdings(connections, flow, {"east.orders"}, other_maker(connections, flow))
    assert held == [
        Holding("audit", "east.audit", "MirrorMaker 2", 5, may_hold=True),
        Holding("empty", "east.empty", "nobody", 0, may_hold=False),
        Holding("orders", "east.orders", "ours", 7, may_hold=True),
    ]
    assert west.asked["log_ends"] == 1, "all partitions at once"
    east.delete(SYNCS)
    assert other_maker(connections, flow) is None
    assert holdings(connections, flow, (), None)[0].whose == "foreign"


@pytest.mark.parametrize(
    ("age", "severity", "said"),
    [
        (20, "refuse", "MirrorMaker 2 writes to topic east.audit"),
        (LIVE_SECONDS + 5, "note", "shows no sign of running any more"),
    ],
)
def test_no_second_writer_beside_one_that_runs(age: float, severity: str, said: str) -> None:
    connections, east, _ = two()
    running(east, age)
    flow = connections.topology.flow("east->west")
    maker = other_maker(connections, flow)
    held = holdings(connections, flow, {"east.orders"}, maker)
    (problem,) = holding_problems(flow, held, maker)
    assert (problem.severity, problem.flows, problem.topic) == (severity, ("east->west",), None)
    assert said in problem.sentence
    assert (
        holding_problems(
            flow, holdings(connections, flow, {"east.orders", "east.audit"}, maker), maker
        )
        == []
    )


def test_foreign_records_are_noted() -> None:
    connections, east, _ = two()
    east.delete(SYNCS)
    flow = connections.topology.flow("east->west")
    (problem,) = holding_problems(flow, holdings(connections, flow, (), None), None)
    assert (problem.rule, problem.severity) == ("foreign-records", "note")
    assert "topic east.audit (and 1 other) on cluster west holds 12 records" in problem.sentence


def test_heartbeats_of_others_are_no_news() -> None:
    connections, east, west = two()
    east.make("heartbeats", 9)
    west.make("east.heartbeats", 9)
    west.delete("east.orders", "east.audit")
    flow = connections.topology.flow("east->west")
    held = holdings(connections, flow, (), None)
    assert ("heartbeats", 9) in {(one.topic, one.records) for one in held}
    assert holding_problems(flow, held, None) == []


def test_under_other_names_both_may_write() -> None:
    connections, east, west = two(".mirrorlake.")
    running(east, 5)
    west.make("east.mirrorlake.orders", 5)
    flow = connections.topology.flow("east->west")
    maker = other_maker(connections, flow)
    held = holdings(connections, flow, {"east.mirrorlake.orders"}, maker)
    assert [item.whose for item in held] == ["ours"] and holding_problems(flow, held, maker) == []
    # A topic that MirrorMaker 2 would call as we call ours.
    east.make("mirrorlake.orders", 1)
    maker = other_maker(connections, flow)
    assert holdings(connections, flow, (), maker)[0].whose == "MirrorMaker 2"


def test_that_it_does_not_run_is_known_only_where_its_topic_answers() -> None:
    """A flow began beside it, and each record was written twice."""
    connections, east, _ = two()
    flow = connections.topology.flow("east->west")
    maker = other_maker(connections, flow)
    assert maker is not None and not maker.is_running, "it never wrote a sync"
    east.silent.add((SYNCS, 0))
    maker = other_maker(connections, flow)
    assert maker is not None and maker.is_running
    (problem,) = holding_problems(flow, holdings(connections, flow, (), maker), maker)
    assert problem.severity == "refuse"
    assert "may write to topic east.audit" in problem.sentence
    assert "not known whether it runs" in problem.sentence


def test_a_topic_whose_leaders_do_not_answer_may_be_full() -> None:
    connections, east, west = two()
    running(east, 5)
    flow = connections.topology.flow("east->west")
    maker = other_maker(connections, flow)
    west.silent |= {("east.audit", 0), ("east.audit", 1), ("east.orders", 0)}
    held = {item.topic: item.whose for item in holdings(connections, flow, (), maker)}
    assert held == {"audit": "MirrorMaker 2", "empty": "nobody", "orders": "MirrorMaker 2"}
    held = {item.topic: item.whose for item in holdings(connections, flow, (), None)}
    assert set(held.values()) == {"nobody"}, "no record is known of"


@pytest.mark.parametrize(
    ("alias", "separator", "live"),
    [
        ("west", ".", "mm2-offset-syncs.east.internal"),
        ("east", "-", "mm2-offset-syncs-west-internal"),
    ],
)
def test_what_it_left_when_it_was_set_up_otherwise_does_not_hide_that_it_runs(
    alias: str, separator: str, live: str
) -> None:
    """Its topic was moved to the target (KIP-716), or its separator changed: the one of before
    stays, and shows no life. The flow began beside it, and each record was written twice."""
    connections, east, west = two(separator)
    running(east, 2 * LIVE_SECONDS)
    west.make(f"east{separator}fresh", 7)
    cluster = east if alias == "east" else west
    cluster.make(live, 3)
    cluster.newest[live, 0] = int((time.time() - 5) * 1000)
    flow = connections.topology.flow("east->west")
    maker = other_maker(connections, flow)
    problems = holding_problems(flow, holdings(connections, flow, (), maker), maker)
    (problem,) = [one for one in problems if one.severity == "refuse"]
    assert "wrote an offset sync within 5 minutes" in problem.sentence


def test_two_that_run_are_both_known() -> None:
    """Between the same clusters, of other separators: each names its mirrors in its own way."""
    connections, east, west = two()
    running(east, 5)
    east.make("mm2-offset-syncs-west-internal", 3)
    east.newest["mm2-offset-syncs-west-internal", 0] = int(time.time() * 1000)
    west.make("east-orders", 7)
    maker = other_maker(connections, connections.topology.flow("east->west"))
    assert maker is not None and maker.names >= {"east.audit", "east-orders"}


@pytest.mark.parametrize(("age", "rule"), [(40, "quiet-writer"), (400, "foreign-records")])
def test_one_that_runs_and_mirrors_nothing_of_late_is_told(age: float, rule: str) -> None:
    """Its topics are quiet, and it writes no offset sync; its workers note once a minute how far
    heartbeats are. It may also mirror the other way alone, so it stops nothing."""
    connections, east, west = two()
    running(east, 2 * LIVE_SECONDS)
    noted = "mm2-offsets.east.internal"
    west.make(noted, 3, 4)
    west.newest[noted, 0] = int((time.time() - 2 * LIVE_SECONDS) * 1000)
    west.newest[noted, 1] = int((time.time() - age) * 1000)
    flow = connections.topology.flow("east->west")
    maker = other_maker(connections, flow)
    (problem,) = holding_problems(flow, holdings(connections, flow, (), maker), maker)
    assert (problem.rule, problem.severity) == (rule, "note")
    told = second_writers(Preflight(connections, (flow,), {"east": "1", "west": "2"}), None)
    assert told == ([problem] if rule == "quiet-writer" else [])


def test_where_its_notes_cannot_be_read_it_may_run() -> None:
    """A leader that did not answer was taken for a topic without a note."""
    connections, east, west = two()
    running(east, 2 * LIVE_SECONDS)
    noted = "mm2-offsets.east.internal"
    west.make(noted, 3, 4)
    west.newest[noted, 1] = int((time.time() - 2 * LIVE_SECONDS) * 1000)
    west.silent.add((noted, 0))
    flow = connections.topology.flow("east->west")
    maker = other_maker(connections, flow)
    (problem,) = holding_problems(flow, holdings(connections, flow, (), maker), maker)
    assert problem.rule == "quiet-writer" and "worker of it may run" in problem.sentence
