"""A flow that another lake has brought to its target is not brought there once more by one that
knows nothing of it."""

from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.checks import preflight
from mirrorlake.checks.other_lakes import begun_topics, is_unknown, other_lakes
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import TopologyError
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.groups import GroupPositions, Listing
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.offsets.positions import Committed, TopicAndPartition
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, append, no_session, opened, run_row, write_file

THEIRS = f"mirrorlake-0123abcd-{FLOW}"


class Groups:
    """The groups of the target, by name what they committed."""

    shows_homes = True
    homes_hidden = True

    def __init__(self, held: dict[str, TopicAndPartition], errors: tuple[str, ...] = ()) -> None:
        self.held, self.errors = held, errors

    def listing(self) -> Listing:
        return Listing(dict.fromkeys(self.held, "EMPTY"), self.errors, self.shows_homes)

    def hides_homes(self) -> bool:
        assert not self.shows_homes
        return self.homes_hidden

    def positions(self, groups: Iterable[str]) -> GroupPositions:
        return GroupPositions({name: {self.held[name]: Committed(7)} for name in groups})


def connected(
    directory: Path, held: dict[str, TopicAndPartition], records: int = 7, errors: Any = ()
) -> Connections:
    topology = load_topology(write_file(directory))
    east = MemoryCluster("east", {"orders": [9], "heartbeats": [9]})
    west = MemoryCluster("west", {"east.heartbeats": [9]})
    west.make("east.orders", records)
    connections = Connections(topology, {"east": east, "west": west})
    connections._groups["west"] = Groups(held, errors)  # type: ignore[assignment]
    return connections


def found(connections: Connections, lake: Lake) -> list[str]:
    flow = connections.topology.flow(FLOW)
    begun = begun_topics(lake.now, flow.name)
    problems = other_lakes(connections, [(flow, begun)], lake.stored_id)
    assert {problem.severity for problem in problems} <= {"refuse"}
    return [problem.sentence for problem in problems]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return opened(no_session, write_file(tmp_path))[0]


def test_what_a_lost_lake_has_brought_is_not_brought_again(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = connected(tmp_path, {THEIRS: ("east.orders", 0)})
    (said,) = found(connections, lake)
    assert "another lake has brought flow east->west to topic east.orders on cluster west" in said
    assert THEIRS in said
    flow = connections.topology.flow(FLOW)
    checked = preflight.Preflight(connections, (flow,), {"east": "a", "west": "b"})
    monkeypatch.setattr(preflight, "check", lambda *_: checked)
    for known in (None, lake):
        with pytest.raises(TopologyError, match="write each record once more"):
            preflight.judge(known, connections, [flow])


def test_a_mirror_whose_leader_does_not_answer_may_be_full(lake: Lake, tmp_path: Path) -> None:
    connections = connected(tmp_path, {THEIRS: ("east.orders", 0)})
    connections.admin("west").silent.add(("east.orders", 0))  # type: ignore[attr-defined]
    (said,) = found(connections, lake)
    assert "another lake has brought flow east->west to topic east.orders" in said


@pytest.mark.parametrize(
    ("group", "topic", "records"),
    [
        (THEIRS, "east.orders", 0),
        (THEIRS, "east.other", 7),
        (THEIRS, "east.heartbeats", 7),
        (f"{THEIRS}-fencing", "east.orders", 7),
        ("mirrorlake-0123abcd-north->west", "east.orders", 7),
        ("billing", "east.orders", 7),
    ],
    ids=["mirror is empty", "other mirror", "heartbeats", "token", "other flow", "consumers"],
)
def test_nothing_else_keeps_a_flow_from_its_first_run(
    lake: Lake, tmp_path: Path, group: str, topic: str, records: int
) -> None:
    assert found(connected(tmp_path, {group: (topic, 0)}, records), lake) == []


def test_a_lake_that_is_older_than_the_target_goes_on(lake: Lake, tmp_path: Path) -> None:
    """Its own positions are there, of which it knows nothing: a backup of before its first run."""
    own = f"mirrorlake-{lake.stored_id}-{FLOW}"
    assert found(connected(tmp_path, {own: ("east.orders", 0)}), lake) == []


def test_a_flow_that_has_begun_is_not_asked_about(lake: Lake, tmp_path: Path) -> None:
    append(lake, "offset_map", [run_row(0, 3)])
    connections = connected(tmp_path, {THEIRS: ("east.orders", 0)})
    connections._groups["west"] = SimpleNamespace()  # type: ignore[assignment]
    assert found(connections, lake) == []


@pytest.mark.parametrize("noted", ["offset_map", "target_generations"])
@pytest.mark.parametrize("errors", [(), ("broker 2 is away",)])
def test_a_flow_that_has_begun_leaves_out_what_another_lake_has_brought(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors: tuple[str, ...], noted: str
) -> None:
    """As where a lake was lost, and its flow was begun anew with other topics. So it does where
    that is not known."""
    if noted == "offset_map":
        append(lake, "offset_map", [run_row(0, 3)])
    else:
        row = {"flow": FLOW, "topic": "orders", "target_topic": "east.orders", "topic_id": "x"}
        row |= {"target_generation": 0, "begins": "stage", "started_at": datetime.now(timezone.utc)}
        lake.append("target_generations", rows_of("target_generations", [row]))
    connections = connected(
        tmp_path, {} if errors else {THEIRS: ("east.payments", 0)}, errors=errors
    )
    connections.admin("east").make("payments", 7)  # type: ignore[attr-defined]
    connections.admin("west").make("east.payments", 7)  # type: ignore[attr-defined]
    flow = connections.topology.flow(FLOW)
    begun = begun_topics(lake.now, FLOW)
    (problem,) = other_lakes(connections, [(flow, begun)], lake.stored_id)
    assert problem.topic == "payments" and is_unknown(problem) is bool(errors)
    checked = preflight.Preflight(connections, (flow,), {"east": "a", "west": "b"})
    monkeypatch.setattr(preflight, "check", lambda *_: checked)
    judged = preflight.judge(lake, connections, [flow])
    assert judged.flows == (flow,) and list(judged.left_out[FLOW]) == ["payments"]
    assert [error.topic for error in judged.complaints()] == ["payments"]


def test_what_is_not_known_is_not_taken_for_nothing(lake: Lake, tmp_path: Path) -> None:
    (said,) = found(connected(tmp_path, {}, errors=("broker 2 is away",)), lake)
    assert "it is not known whether another lake" in said and "broker 2 is away" in said


@pytest.mark.parametrize(
    ("records", "is_there", "notes"), [(7, True, 1), (0, True, 0), (7, False, 0)]
)
def test_where_coordinators_are_not_shown_that_is_noted(
    lake: Lake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    records: int,
    is_there: bool,
    notes: int,
) -> None:
    """By the least ACLs of before the topic of positions was among them; into full topics alone,
    and the flow starts. A cluster that never had a group has no such topic."""
    monkeypatch.setattr(Groups, "shows_homes", False)
    monkeypatch.setattr(Groups, "homes_hidden", is_there)
    connections = connected(tmp_path, {}, records)
    flow = connections.topology.flow(FLOW)
    problems = other_lakes(connections, [(flow, ())], lake.stored_id)
    assert [problem.severity for problem in problems] == ["note"] * notes
    assert all("DESCRIBE on topic __consumer_offsets" in one.sentence for one in problems)
    checked = preflight.Preflight(connections, (flow,), {"east": "a", "west": "b"})
    monkeypatch.setattr(preflight, "check", lambda *_: checked)
    assert preflight.judge(lake, connections, [flow]).flows == (flow,)
