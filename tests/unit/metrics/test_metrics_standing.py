"""What a scrape says of flows that another process runs, and of flows without heartbeats."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.metrics.facts import Facts, FlowInForce, waits
from mirrorlake.metrics.model import families
from mirrorlake.metrics.standing import Standing
from mirrorlake.run.replicator import Replicator
from tests.support.lake_rows import FLOW, write_file


def standing(directory: Path, runs: bool, wants: bool = True, **settings: object) -> Facts:
    """Of a process that wants the flow or not, and runs it or not."""
    topology = load_topology(write_file(directory, flows={FLOW: settings}))
    side = SimpleNamespace(positions=dict)
    running = SimpleNamespace(
        worker=SimpleNamespace(flow=topology.flow(FLOW)),
        control=SimpleNamespace(groups=SimpleNamespace(source=side, target=side)),
    )
    process = SimpleNamespace(
        begun=True,
        topology=topology,
        running=[running] if runs else [],
        wanted=[FLOW] * wants,
        take_over=SimpleNamespace(unsettled=None if runs else "the session is being prepared"),
        workers=[],
        event_log=SimpleNamespace(incidents=SimpleNamespace(open_kind_counts=dict)),
    )
    found = Standing(lambda: None)
    found.replicator = cast(Replicator, process)
    return found.facts()


def series(facts: Facts, name: str) -> dict[Any, Any]:
    return {f.metric.name: dict(f.series) for f in families(facts, 1000)}[name]


@pytest.mark.parametrize("runs", [True, False])
def test_who_stands_by_says_so(tmp_path: Path, runs: bool) -> None:
    facts = standing(tmp_path, runs)
    assert series(facts, "mirrorlake_flow_running") == {(FLOW,): float(runs)}
    assert ((FLOW, "stuck") in series(facts, "mirrorlake_objective_seconds")) is runs
    why = f"flow {FLOW} has not produced anything yet" if runs else "the session is being prepared"
    assert waits(facts) == [why]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, True),
        ({"emit_heartbeats_enabled": False}, False),
        ({"heartbeats_replication_enabled": False, "topics": ["orders"]}, False),
        ({"paused": ["heartbeats"]}, False),
    ],
)
def test_heartbeats_have_an_objective_where_they_come_through(
    tmp_path: Path, settings: dict[str, object], told: bool
) -> None:
    """By it an alert knows whether heartbeats are missing that never came."""
    objectives = series(standing(tmp_path, runs=True, **settings), "mirrorlake_objective_seconds")
    assert ((FLOW, "heartbeat") in objectives) is told


def test_a_process_that_is_to_run_nothing_has_begun_all_the_same(tmp_path: Path) -> None:
    """By `MirrorlakeNotBegun` it was still starting, where a catalog's platform keeps the tables
    small: it has no other thread."""
    facts = standing(tmp_path, runs=False, wants=False, enabled=False)
    assert series(facts, "mirrorlake_worker_state")["run", "working"] == 1.0
    assert not series(facts, "mirrorlake_flow_running"), "so `MirrorlakeNoneRuns` holds for none"
    assert "run" not in {worker.name for worker in Standing(lambda: None).facts().workers}


def test_a_flow_that_begins_is_not_one_that_waits() -> None:
    facts = Facts(in_force=(FlowInForce(FLOW),), stands_by=(FLOW,))
    assert series(facts, "mirrorlake_flow_running") == {(FLOW,): 1.0}


def test_how_long_a_sample_holds_is_by_the_interval(tmp_path: Path) -> None:
    for interval, quiet in ((10, 60.0), (600, 1800.0)):
        folder = tmp_path / str(interval)
        facts = standing(folder, runs=True, sample_positions_interval_seconds=interval)
        assert facts.in_force[0].quiet_seconds == quiet
