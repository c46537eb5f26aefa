"""A clock for `mirrorlake.attempts`: time goes on where something is waited for, at once."""

import pytest

from mirrorlake import attempts


class Clock:
    """The time, in seconds: `now`."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def Event(self) -> "Clock":
        return self

    def wait(self, seconds: float) -> None:
        self.now += seconds


def attempts_go_by(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Have `attempts` go by a new clock for the time of a test."""
    clock = Clock()
    monkeypatch.setattr(attempts, "time", clock)
    monkeypatch.setattr(attempts, "threading", clock)
    return clock
