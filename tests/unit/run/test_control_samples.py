"""Samples say that a flow runs: none is written of one whose worker is gone. And what a turn of
control leaves out, a run with an end has not done."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.errors import LeaseTaken, MapError, MirrorlakeError
from mirrorlake.run import control_loop
from mirrorlake.run.control_loop import MOVED_SECONDS, ControlLoop, ControlTask


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


def turns_by(sync: Callable[[], None], *, once: bool) -> Any:
    """As much of a control loop as sets positions of groups."""
    return SimpleNamespace(
        flow=SimpleNamespace(name="east->west"),
        groups=SimpleNamespace(target=SimpleNamespace(sync=sync)),
        _flow_worker=SimpleNamespace(once=once),
        _moved_since=None,
    )


@pytest.mark.parametrize("once", [False, True])
def test_groups_that_a_command_moves_wait_for_a_turn_where_there_is_one(once: bool) -> None:
    """A run with an end left their positions as they were, and ended with exit code 0."""

    def sync() -> None:
        raise LeaseTaken("another process moves groups")

    loop = turns_by(sync, once=once)
    if not once:
        ControlLoop._sync_groups(loop)
        return
    with pytest.raises(LeaseTaken):
        ControlLoop._sync_groups(loop)


def test_groups_that_a_command_moves_for_ever_are_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs kept all positions at the target where they were, and the task counted as
    done."""
    now, taken = [1_000.0], [True]
    monkeypatch.setattr(control_loop, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def sync() -> None:
        if taken[0]:
            raise LeaseTaken("process 7 moves groups")

    loop = turns_by(sync, once=False)
    ControlLoop._sync_groups(loop)
    now[0] += MOVED_SECONDS - 1
    ControlLoop._sync_groups(loop)
    now[0] += 1
    with pytest.raises(LeaseTaken):
        ControlLoop._sync_groups(loop)
    taken[0] = False
    ControlLoop._sync_groups(loop)
    taken[0] = True
    ControlLoop._sync_groups(loop)  # by another one


def test_what_takes_long_comes_less_often_but_for_its_first_turn() -> None:
    """As what goes by all groups and partitions does where these are thousands."""
    task = ControlTask("checkpoints", 10.0, lambda: None)
    for spent, wait in [(3.0, 10.0), (0.1, 10.0), (2.0, 10.0), (1.0, 20.0), (1.5, 20.0)]:
        task.next_due(100.0, spent, 0.0)
        assert task.due == 100.0 + wait, spent
    task.next_due(100.0, 0.0, control_loop.RETRY_SECONDS + 5.0)
    assert task.due == 100.0 + control_loop.RETRY_SECONDS + 5.0, "one that failed"
