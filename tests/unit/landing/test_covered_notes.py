"""How far a landing has come over transaction markers is known to the processes that produce what
it lands."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.landing import worker as landing_worker
from mirrorlake.landing.covered_notes import CoveredNotes
from mirrorlake.landing.generations import begin_generations
from mirrorlake.landing.source_comparison import CurrentGenerations, TopicGeneration
from mirrorlake.landing.worker import LandingWorker
from tests.support.lake_rows import no_session, opened, write_file

RESTING, MOVING = ("t", 0), ("t", 1)
FIRST = CurrentGenerations({"t": TopicGeneration(0, "a")})


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    lake, topology = opened(no_session, write_file(tmp_path))
    begin_generations(lake, "east", FIRST.topics)
    return Deployment(lake, Connections(topology), EventLog(lake))


class Query:
    """One that has come to a marker of one partition, and goes on with another one for some
    looks."""

    active = began = True
    ended = False
    name = "a checkpoint"

    def __init__(self, worker: LandingWorker, looks: int) -> None:
        self.sink = SimpleNamespace(failure=None, compared=True)
        self._worker, self._looks, self._moves = worker, looks, 0

    def covered(self) -> dict[tuple[str, int], int]:
        self._moves += 1
        if self._moves > self._looks:
            self._worker.thread.stopping.set()
        return {RESTING: 7, MOVING: self._moves}

    def fenced(self) -> bool:
        return False

    def stop(self) -> None:
        pass


def land(deployment: Deployment, monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    """A process lands for a while; `shared`: flows from there run in other ones."""
    worker = LandingWorker("east", deployment, None, once=False)  # type: ignore[arg-type]
    worker.set_flows([], deployment.connections, shared)
    worker._changed.clear()
    for name in ("LOOK_SECONDS", "COMPARE_SECONDS"):
        monkeypatch.setattr(landing_worker, name, 0.0)
    monkeypatch.setattr(type(worker._flows), "pace", SimpleNamespace(owners=0.0))
    planner: Any = SimpleNamespace(differs=lambda *_: False, succeeded=lambda _: None)
    worker._planner, worker._current_generations = planner, FIRST
    plan = SimpleNamespace(starts=dict.fromkeys((RESTING, MOVING), 0))
    planned: Any = SimpleNamespace(
        plan=plan, topics={}, denied={}, refused={}, current_generations=FIRST
    )
    worker._query = query = Query(worker, 9)  # type: ignore[assignment]
    client: Any = SimpleNamespace(renewed=lambda: False)
    assert worker._watch(query, planned, client)  # type: ignore[arg-type]


@pytest.mark.parametrize("shared", [True, False])
def test_who_does_not_land_knows_what_rests_behind_a_marker(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    land(deployment, monkeypatch, shared)
    elsewhere = LandingWorker("east", deployment, None, once=False)  # type: ignore[arg-type]
    assert elsewhere.covered() == {}, "as long as it does not wait for the other one"
    elsewhere._waits = True
    assert elsewhere.covered() == ({RESTING: 7} if shared else {})
    begin_generations(deployment.lake, "east", {"t": TopicGeneration(1, "b")})
    elsewhere._read_at = float("-inf")
    assert elsewhere.covered() == {}, "of a log that is over nothing counts"


def test_what_is_no_news_is_not_written(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, written = CoveredNotes(deployment.lake, "east"), list[bytes]()
    monkeypatch.setattr(type(notes._file), "write", lambda _, content: written.append(content))
    for at in range(9):
        notes.note({RESTING: 7, MOVING: at}, FIRST)
    assert len(written) == 1
    notes.note({RESTING: 7, MOVING: 9}, FIRST, is_over=True)
    assert len(written) == 2 and b'["t", 1, 0, 9]' in written[1]


def test_a_note_that_is_not_taken_is_written_again(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = CoveredNotes(deployment.lake, "east")

    def away(*_: object) -> None:
        raise OSError("the store is away")

    with monkeypatch.context() as store:
        store.setattr(type(notes._file), "write", away)
        for _ in range(2):
            notes.note({RESTING: 7}, FIRST)
    notes.note({RESTING: 7}, FIRST)
    other = CoveredNotes(deployment.lake, "east")
    assert dict(other.read()) == {FIRST.place(RESTING): 7}
    with monkeypatch.context() as store:
        store.setattr(type(notes._file), "read", away)
        assert dict(other.read()) == {FIRST.place(RESTING): 7}, "what was read before is true still"
