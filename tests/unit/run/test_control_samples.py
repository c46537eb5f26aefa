"""Samples say that a flow runs: none is written of one whose worker is gone."""

import threading
from types import SimpleNamespace

import pytest

from mirrorlake.errors import MapError, MirrorlakeError
from mirrorlake.run.control_loop import ControlLoop


@pytest.mark.parametrize(
    ("error", "stopping", "written"),
    [
        (None, False, 1),
        (MapError("they contradict each other"), False, 0),
        (MapError("they do"), True, 1),
    ],
    ids=["a flow that goes on", "one that ended with an error", "the last one, of where it ended"],
)
def test_a_flow_that_ended_with_an_error_is_sampled_once_more_at_the_end(
    error: MirrorlakeError | None, stopping: bool, written: int
) -> None:
    taken: list[object] = []
    stop = threading.Event()
    if stopping:
        stop.set()
    loop = SimpleNamespace(
        flow=SimpleNamespace(name="east->west"),
        thread=SimpleNamespace(stopping=stop),
        _flow_worker=SimpleNamespace(thread=SimpleNamespace(error=error), snapshot=None),
        _sampler=SimpleNamespace(sample=taken.append),
        _sampled=lambda _flow, _lag: None,
    )
    ControlLoop.sample(loop)  # type: ignore[arg-type]
    assert len(taken) == written
