"""How a flow runs is noted in the lake, by which `alerts` go, until the lake takes it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.failover import drain
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.objectives import note_objectives
from mirrorlake.run import noted_modes, replicator
from mirrorlake.run.options import RunOptions
from mirrorlake.run.replicator import Replicator
from tests.support.lake_rows import FLOW, no_session, opened, write_file

Setting = tuple[Lake, Deployment]


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """A lake, and what a replicator over it needs."""
    lake, topology = opened(no_session, write_file(tmp_path))
    return lake, Deployment(lake, Connections(topology), EventLog(lake))


def replicating(deployment: Deployment, **options: Any) -> Replicator:
    flows = deployment.connections.topology.active_flows()
    return Replicator(deployment, flows, RunOptions(**options))


def modes(lake: Lake) -> dict[str, str]:
    return {row["flow"]: row["mode"] for row in lake.ask_table("objectives")}


class Refusing:
    """A lake that takes a note only the third time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        monkeypatch.setattr(noted_modes, "note_objectives", self)

    def __call__(self, *given: Any) -> None:
        self.asked += 1
        if self.asked < 3:
            raise OSError("the store is away")
        note_objectives(*given)


def test_what_the_lake_did_not_take_is_noted_once_more(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that began while the store was away for a moment had no alert for as long as it
    lasted: neither a lag nor its own end was one."""
    lake, deployment = setting
    note_objectives(lake, deployment.connections.topology, {FLOW: "stopped"})
    made, refusing = replicating(deployment), Refusing(monkeypatch)
    made._modes.note(made.topology, [FLOW], "continuous")
    assert modes(lake) == {FLOW: "stopped"}
    monkeypatch.setattr(replicator, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(replicator, "LOOK_SECONDS", 0.0)
    made._all_ended = lambda: refusing.asked == 3  # type: ignore[method-assign]
    made._watch(None)
    assert modes(lake) == {FLOW: "continuous"}
    assert made._modes.error is None, "what came through is no error of the run"
    made._modes.again()
    assert refusing.asked == 3, "once"


def test_a_note_that_never_came_through_is_an_error_of_the_run(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = replicating(setting[1])
    Refusing(monkeypatch)
    made._modes.note(made.topology, [FLOW], "continuous")
    made._end()
    assert [str(error) for error in made._errors] == [
        "noting the objectives of the flows stopped: the store is away"
    ]


def test_the_newest_of_several_notes_counts(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = replicating(setting[1])
    Refusing(monkeypatch)
    for mode in ("continuous", "stopped", "stopped"):
        made._modes.note(made.topology, [FLOW], mode)  # type: ignore[arg-type]
    assert modes(setting[0]) == {FLOW: "stopped"}


def test_a_command_that_brings_a_flow_to_its_end_says_nothing_of_how_it_runs(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a flow that `failover` had drained it was no alert any more that its process is gone."""
    lake, deployment = setting
    note_objectives(lake, deployment.connections.topology, {FLOW: "continuous"})
    asked: list[RunOptions] = []

    class Drains:
        def __init__(self, *given: Any, **_: object) -> None:
            asked.append(given[2])

        def run(self) -> None:
            pass

    monkeypatch.setattr(drain, "Replicator", Drains)
    monkeypatch.setattr(drain, "_ends", lambda *_: ({}, [], []))
    monkeypatch.setattr(drain, "_is_free", lambda *_: (True, None))
    assert drain.drain(deployment, deployment.connections.topology.flow(FLOW)).complete
    made = Replicator(deployment, [], asked[0])
    made._modes.note(made.topology, [FLOW], "once")
    assert modes(lake) == {FLOW: "continuous"}


def applying(made: Replicator, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has it begin with its flows, which need no cluster; returns what stands for their worker."""
    worker = SimpleNamespace(tenures=0)
    made._here.running = {FLOW: SimpleNamespace(worker=worker)}  # type: ignore[dict-item]
    for name in ("_beat", "_apply_landings"):
        setattr(made, name, lambda *_: None)
    made._here.follow = lambda _: []  # type: ignore[method-assign]
    monkeypatch.setattr(replicator, "note_starts_known", lambda *_: [])
    flows = made.topology.active_flows()
    preflight: Any = SimpleNamespace(connections=made._connections, flows=flows, to_note={})
    preflight.silent, preflight.left_out, preflight.complaints = {}, {}, list
    made._apply(preflight)
    made.begun = True
    return worker


def test_a_run_with_an_end_says_nothing_of_a_flow_that_another_process_runs(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alerts of a continuous run ended with it: of its heartbeats, and of its process."""
    lake, deployment = setting
    note_objectives(lake, deployment.connections.topology, {FLOW: "continuous"})
    made = replicating(deployment, once=True)
    worker = applying(made, monkeypatch)
    made._modes.follow(made.topology, made._here.tenures, always=True)
    assert modes(lake) == {FLOW: "continuous"}
    worker.tenures = 1
    made._follow_leases()
    assert modes(lake) == {FLOW: "once"}


def test_a_continuous_run_that_has_its_flow_again_says_so(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run --once` had it between two of its attempts."""
    lake, deployment = setting
    made = replicating(deployment)
    worker = applying(made, monkeypatch)
    worker.tenures = 1
    made._follow_leases()
    note_objectives(lake, deployment.connections.topology, {FLOW: "once"})
    made._follow_leases()
    assert modes(lake) == {FLOW: "once"}
    worker.tenures = 2
    made._follow_leases()
    assert modes(lake) == {FLOW: "continuous"}
