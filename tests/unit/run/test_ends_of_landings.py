"""What a landing that an edit of the topology ends has ended with is an error of the run; and one
that does not start is made again."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.errors import ReplicationError
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import place_of
from mirrorlake.run import landings_here
from mirrorlake.run.landings_here import LandingsHere
from mirrorlake.run.options import RunOptions
from mirrorlake.run.replicator import Replicator
from tests.support.lake_rows import no_session


@pytest.mark.parametrize("error", [None, ReplicationError("the disk is full")])
def test_a_landing_that_no_flow_reads_any_more_is_asked_what_it_ended_with(
    tmp_path: Path, error: ReplicationError | None
) -> None:
    lake = PathLake(no_session, place_of(tmp_path / "lake"), tmp_path / "checkpoints")
    connections = SimpleNamespace(topology=SimpleNamespace(availability="lease"))
    deployment: Any = SimpleNamespace(lake=lake, event_log=None, connections=connections)
    replicator = Replicator(deployment, [], RunOptions())
    calls: list[str] = []
    thread = SimpleNamespace(stop=lambda: calls.append("stop"), join=lambda: calls.append("join"))
    landing: Any = SimpleNamespace(thread=thread, error=error)
    replicator._landings.workers["east"] = landing
    nothing: Any = SimpleNamespace(
        connections=SimpleNamespace(topology=SimpleNamespace(sources=dict)), flows=()
    )
    replicator._apply_landings(nothing)
    assert calls == ["stop", "join"] and replicator._landings.workers == {}
    assert replicator._errors == ([] if error is None else [error])


def test_a_landing_whose_thread_does_not_start_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It counted as there: flows that an edit had begin waited for it without a word."""
    started: list[str] = []

    class Landing:
        def __init__(self, source: str, *_: object) -> None:
            self.source, self.thread = source, SimpleNamespace(start=self.start)

        def set_flows(self, *_: object) -> None:
            pass

        def start(self) -> None:
            started.append(self.source)
            if len(started) == 1:
                raise RuntimeError("can't start new thread")

    monkeypatch.setattr(landings_here, "LandingWorker", Landing)
    stage: Any = None
    leases: Any = SimpleNamespace(of_landing=lambda *_: None)
    landings = LandingsHere(stage, leases, once=False, note=lambda _error: None)
    deployment: Any = SimpleNamespace(connections=None)
    with pytest.raises(RuntimeError):
        landings.want({"east": []}, deployment)
    landings.want({"east": []}, deployment)
    landings.want({"east": []}, deployment)
    assert started == ["east", "east"] and [*landings.workers] == ["east"]
