"""Objectives and maintenance settings in the topology file."""

import re
from pathlib import Path

import pytest

from mirrorlake.config.objectives import paused_pattern
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import TopologyError
from tests.support.lake_rows import write_file


def test_defaults_are_those_of_the_contract(tmp_path: Path) -> None:
    topology = load_topology(write_file(tmp_path))
    wanted = {
        "lag_seconds": 60,
        "latency_p99_ms": 5000,
        "heartbeat_seconds": 60,
        "stuck_seconds": 600,
    }
    assert topology.objectives.for_flow("east->west") == {**wanted, "transaction_seconds": 900}
    assert topology.maintain.retention_days is None


def test_a_flow_may_differ(tmp_path: Path) -> None:
    objectives = {"lag_seconds": 30, "flows": {"east->west": {"lag_seconds": 900}}}
    flows = {"east->west": {}, "west->east": {}}
    found = load_topology(write_file(tmp_path, objectives=objectives, flows=flows)).objectives
    assert (
        found.for_flow("east->west")["lag_seconds"],
        found.for_flow("west->east")["lag_seconds"],
    ) == (900, 30)
    assert found.for_flow("east->west")["stuck_seconds"] == 600


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        (
            {"objectives": {"lag_second": 5}},
            "unknown key objectives.lag_second; did you mean lag_seconds?",
        ),
        (
            {"objectives": {"flows": {"east->west": {"lag": 5}}}},
            "unknown key objectives.flows.east->west.lag",
        ),
        (
            {"objectives": {"flows": {"east->wst": {}}}},
            "the unknown flow east->wst; did you mean east->west?",
        ),
        ({"objectives": {"lag_seconds": 0}}, "objectives.lag_seconds must be at least 1"),
        (
            {"objectives": {"stuck_seconds": 86400}},
            "objectives.stuck_seconds must be at most 43200",
        ),
        (
            {"maintain": {"retention": 5}},
            "unknown key maintain.retention; did you mean retention_days?",
        ),
        ({"maintain": {"retention_days": 0}}, "maintain.retention_days must be at least 1"),
        ({"maintian": {}}, "unknown key maintian; did you mean maintain?"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    tmp_path: Path, blocks: dict[str, object], said: str
) -> None:
    with pytest.raises(TopologyError, match=re.escape(said)):
        load_topology(write_file(tmp_path, **blocks))


@pytest.mark.parametrize(
    ("paused", "topic", "is_paused"),
    [
        (False, "a", False),
        (True, "a", True),
        ((), "a", False),
        (("a|b", "c.*"), "b", True),
        (("a|b",), "ab", False),
    ],
)
def test_what_is_paused_as_one_pattern(
    paused: bool | tuple[str, ...], topic: str, is_paused: bool
) -> None:
    pattern = paused_pattern(paused)
    assert (pattern is not None and re.search(pattern, topic) is not None) is is_paused
