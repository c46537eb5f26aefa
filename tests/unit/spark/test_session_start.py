"""A session that starts in the background: whoever asks gets it, or what kept it from starting."""

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.errors import MissingJava
from mirrorlake.spark.session_start import SessionStart


def test_it_is_waited_for() -> None:
    go, session = threading.Event(), SimpleNamespace()

    def opening() -> Any:
        assert go.wait(10)
        return session

    start, stop = SessionStart(opening), threading.Event()
    threading.Timer(0.2, go.set).start()
    assert start.ready(stop) and start.session() is session


def test_it_begins_once_and_only_when_it_is_needed() -> None:
    """So does what is prepared behind it, whichever comes first."""
    opened: list[str] = []
    start = SessionStart(lambda: opened.append("session"))  # type: ignore[arg-type, return-value]
    prepared = [threading.Event(), threading.Event()]
    start.run_after_start(prepared[0].set)
    assert start.began is None and not (start.over or start.failed or opened)
    for _ in range(2):
        start.begin()
    assert start.ready(threading.Event()) and opened == ["session"]
    assert start.over and prepared[0].wait(10)
    start.run_after_start(prepared[1].set)
    assert prepared[1].wait(10)


def test_what_keeps_it_from_starting_is_raised_to_who_asks() -> None:
    def opening() -> Any:
        raise MissingJava("there is no Java")

    start = SessionStart(opening)
    assert start.ready(threading.Event())
    with pytest.raises(MissingJava):
        start.session()


def test_who_is_told_to_stop_waits_no_longer() -> None:
    go, stop = threading.Event(), threading.Event()
    start = SessionStart(lambda: go.wait(30))  # type: ignore[arg-type, return-value]
    stop.set()
    began = time.monotonic()
    assert not start.ready(stop)
    assert time.monotonic() - began < 5
    go.set()
