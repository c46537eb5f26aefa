"""A fresh session is prepared behind `run`, which neither waits for that nor ends with it."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError

from mirrorlake.library import replicating
from mirrorlake.spark import session
from mirrorlake.spark.session_start import SessionStart


def prepared(tables: Any) -> None:
    start = SessionStart(lambda: tables.spark)
    replicating._prepare_behind(start, tables, None)
    assert not start.over, "not before it is begun"
    start.begin()
    for thread in threading.enumerate():
        if thread.name == "preparing the session":
            thread.join(5)


def test_workers_are_started_in_the_session_of_the_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(session, "start_workers", seen.append)
    prepared(SimpleNamespace(spark="the session"))
    assert seen == ["the session"]


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_session_that_ends_meanwhile_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def ended(_session: Any) -> None:
        raise PySparkRuntimeError("the session was stopped")

    monkeypatch.setattr(session, "start_workers", ended)
    caplog.set_level("DEBUG")
    prepared(SimpleNamespace(spark=None))
    assert "the session was stopped" in caplog.text
