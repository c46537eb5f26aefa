"""A flow that has nothing to produce rests until it is time to look, or until something calls."""

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from mirrorlake.config.idle import FOLDER, IdlePace, pace_in_store
from mirrorlake.run import flow_worker
from mirrorlake.run.flow_worker import LOOK_SECONDS, FlowWorker

#: After so many seconds something calls.
CALLED = 3.0


class Stopping:
    """A thread's wish to end, and the clock: waiting for it takes no time of ours."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.now, self.wish, self._call = 0.0, False, call

    def set(self) -> None:
        self.wish = True

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        if self.now >= CALLED:
            self._call()
        return self.wish


class Resting:
    """A flow over a lake of a pace that knows version 5 of the stage."""

    def __init__(
        self,
        pace: IdlePace,
        call: Callable[["Resting"], object] = lambda _: None,
        lands: bool = True,
    ) -> None:
        self.version: int | None = 5
        lake = SimpleNamespace(pace=pace)
        self._connections = SimpleNamespace(topology=SimpleNamespace(lake=lake))
        self._landing = SimpleNamespace(
            lands=lands, thread=SimpleNamespace(ended=threading.Event())
        )
        self.thread = SimpleNamespace(stopping=Stopping(lambda: call(self)))
        self._snapshots = SimpleNamespace(wanted=False)
        self._lease = SimpleNamespace(held=True)
        self._again = threading.Event()
        self._lake = SimpleNamespace(known_version=lambda _table: self.version)

    def rests(self, patch: pytest.MonkeyPatch) -> float:
        """For how many seconds it does."""
        clock = self.thread.stopping
        patch.setattr(flow_worker, "time", SimpleNamespace(monotonic=lambda: clock.now))
        FlowWorker._rest(self, 5)  # type: ignore[arg-type]
        return float(clock.now)


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
def test_in_a_store_it_rests_until_something_calls(
    call: Callable[[Resting], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = pace_in_store(None)
    assert pace.looks > CALLED + 1
    assert CALLED <= Resting(pace, call).rests(monkeypatch) <= CALLED + 2 * LOOK_SECONDS


@pytest.mark.parametrize("pace", [FOLDER, pace_in_store(None)], ids=["folder", "store"])
@pytest.mark.parametrize("lands", [True, False], ids=["it lands", "another process lands"])
def test_else_it_rests_until_it_is_time_to_look(
    pace: IdlePace, lands: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = Resting(pace, lands=lands).rests(monkeypatch)
    wanted = pace.looks if lands else pace.looks_elsewhere
    assert wanted <= rest + 1e-6 and rest <= wanted + 2 * LOOK_SECONDS


def test_what_others_land_is_looked_for_soon() -> None:
    """In a folder at once; in a store as soon as its price allows."""
    assert max(FOLDER.looks, FOLDER.looks_elsewhere) < 0.5
    assert pace_in_store(None).looks_elsewhere < 5
