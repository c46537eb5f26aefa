"""A flow that has nothing to produce rests until it is time to look, or until something calls."""

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from mirrorlake.config.idle import FOLDER, IdlePace, pace_in_store
from mirrorlake.run.flow_worker import FlowWorker


class Resting:
    """A flow over a lake of a pace that knows version 5 of the stage."""

    def __init__(self, pace: IdlePace, lands: bool = True) -> None:
        self.version: int | None = 5
        lake = SimpleNamespace(pace=pace)
        self._connections = SimpleNamespace(topology=SimpleNamespace(lake=lake))
        self._landing = SimpleNamespace(
            lands=lands, thread=SimpleNamespace(ended=threading.Event())
        )
        self.thread = SimpleNamespace(stopping=threading.Event())
        self._snapshots = SimpleNamespace(wanted=False)
        self._lease = SimpleNamespace(held=True)
        self._again = threading.Event()
        self._lake = SimpleNamespace(known_version=lambda _table: self.version)

    def rests(self) -> float:
        """For how many seconds it does."""
        began = time.monotonic()
        FlowWorker._rest(self, 5)  # type: ignore[arg-type]
        return time.monotonic() - began


@pytest.mark.parametrize(
    "call",
    [
        lambda flow: setattr(flow, "version", 6),
        lambda flow: setattr(flow._snapshots, "wanted", True),
        lambda flow: setattr(flow._lease, "held", False),
        lambda flow: flow._again.set(),
        lambda flow: flow._landing.thread.ended.set(),
        lambda flow: flow.thread.stopping.set(),
    ],
    ids=[
        "this process has landed",
        "who asks where it is",
        "another takes over",
        "begin anew",
        "the end",
        "stop",
    ],
)
def test_in_a_store_it_rests_until_something_calls(call: Callable[[Resting], object]) -> None:
    flow = Resting(pace_in_store(None))
    timer = threading.Timer(0.3, call, [flow])
    timer.start()
    assert 0.2 < flow.rests() < 5
    timer.join()


def test_else_it_looks_for_what_others_have_landed() -> None:
    assert Resting(FOLDER).rests() < 0.5
    assert 0.9 < Resting(pace_in_store(None), lands=False).rests() < 5
