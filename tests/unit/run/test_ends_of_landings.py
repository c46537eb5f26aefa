"""What a landing that an edit of the topology ends has ended with is an error of the run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.errors import ReplicationError
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import place_of
from mirrorlake.run.replicator import Replicator, RunOptions
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
