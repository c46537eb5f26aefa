"""How often a query begins a batch: more rarely where a session commits, unless the file says
it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.cluster import Landing
from mirrorlake.landing import land
from mirrorlake.landing.land import SESSION_TRIGGER_SECONDS, TRIGGER_SECONDS
from mirrorlake.landing.session_sink import SessionSink
from mirrorlake.landing.sinks import PathSink
from tests.support.landing import job_in, lake_in


class Writer:
    """Spark's writer of a stream, which notes what it is told."""

    def __init__(self, triggers: list[str]) -> None:
        self._triggers = triggers

    def queryName(self, _name: str) -> "Writer":
        return self

    def option(self, _name: str, _value: str) -> "Writer":
        return self

    def trigger(self, *, processingTime: str) -> "Writer":
        self._triggers.append(processingTime)
        return self


@pytest.mark.parametrize("by_session", [False, True])
@pytest.mark.parametrize("given", [None, 0, 5_000])
def test_a_session_begins_batches_more_rarely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_session: bool, given: int | None
) -> None:
    triggers, jobs = list[str](), list[Any]()

    def stream(_spark: object, job: object, _lake_id: str) -> object:
        jobs.append(job)
        return SimpleNamespace(writeStream=Writer(triggers))

    lake: Any = lake_in(tmp_path)
    lake.stored_id, lake._session = "id", object()
    monkeypatch.setattr(land, "stream_of", stream)
    monkeypatch.setattr(land, "over_connect", lambda: by_session)
    for sink in (PathSink, SessionSink):
        monkeypatch.setattr(sink, "start", lambda *_: SimpleNamespace())
    landing = Landing() if given is None else Landing(trigger_ms=given)
    query = land._stream(lake, job_in(tmp_path), landing, tmp_path / "checkpoint")
    usual = SESSION_TRIGGER_SECONDS if by_session else TRIGGER_SECONDS
    seconds = usual if given is None else given / 1_000
    assert triggers == [f"{seconds * 1_000:.0f} milliseconds"]
    assert [job.trigger_seconds for job in jobs] == [seconds], "by which its pace is learnt"
    assert isinstance(query.sink, SessionSink if by_session else PathSink)


def test_batches_of_a_session_are_three_times_further_apart() -> None:
    """At a steady pace of records so many commits fewer are made: each is a job of Spark's."""
    assert SESSION_TRIGGER_SECONDS >= 3 * TRIGGER_SECONDS
