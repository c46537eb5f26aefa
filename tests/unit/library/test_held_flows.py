"""A run of flows that another process runs says so before it starts Spark or asks a cluster."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import mirrorlake
from mirrorlake.errors import LeaseTaken
from mirrorlake.lake.file_lock import FileLock
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.place import place_of
from mirrorlake.library.internals import Internals

FIRST, SECOND = "flow east->west", "flow east->north"

Run = Callable[..., object]
Hold = Callable[[str], Lease]


class Began(Exception):
    """The run came to where Spark starts."""


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(_known: Internals) -> None:
        raise Began

    monkeypatch.setattr(Internals, "later_session", begin)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs flows of a file, which may have more lines."""

    def run(*flows: str, more: str = "", second: str = "{topics: [b]}") -> object:
        file = tmp_path / "mirrorlake.yml"
        file.write_text(
            "clusters:\n"
            "  east: {bootstrap_servers: '127.0.0.1:1'}\n"
            "  west: {bootstrap_servers: '127.0.0.1:2'}\n"
            "  north: {bootstrap_servers: '127.0.0.1:3'}\n"
            f"lake: {{path: ./lake}}\n{more}"
            f"flows:\n  east->west: {{topics: [a]}}\n  east->north: {second}\n"
        )
        return mirrorlake.open(file).run(flows or None)

    return run


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Hold]:
    """Takes the lease of some work, as another process would."""
    held: list[Lease] = []

    def hold(what: str) -> Lease:
        place = place_of(tmp_path / "lake/_checkpoints/leases")
        held.append(Lease(cast(Lake, SimpleNamespace(leases=place)), what))
        held[-1].take(sure=True)
        return held[-1]

    yield hold
    for lease in held:
        lease.release()


def test_the_process_that_has_all_of_them_is_named(run: Run, hold: Hold) -> None:
    with pytest.raises(Began):
        run()
    first = hold(FIRST)
    held = f"{FIRST} is held by process {os.getpid()} on .* stop that process"
    with pytest.raises(LeaseTaken, match=held):
        run("east->west")
    with pytest.raises(Began):  # there is something left to do
        run()
    hold(SECOND)
    with pytest.raises(LeaseTaken, match=held):
        run()
    first.release()
    with pytest.raises(Began):
        run("east->west")


def test_a_flow_that_is_paused_is_none_to_run(run: Run, hold: Hold) -> None:
    hold(FIRST)
    with pytest.raises(LeaseTaken, match=FIRST):
        run(second="{topics: [b], paused: true}")


def test_processes_that_stand_by_for_each_other_begin(run: Run, hold: Hold) -> None:
    hold(FIRST)
    with pytest.raises(Began):
        run("east->west", more="availability: kafka\n")


def test_to_ask_takes_nothing_away(hold: Hold) -> None:
    """Nor is one that is noted, and not locked, taken for one that is held."""
    lock = hold(FIRST).lock
    assert isinstance(lock, FileLock)
    noted = lock.file.read_text()
    assert lock.holder() and lock.file.read_text() == noted
    lock.release()
    assert lock.holder() is None
    lock.file.write_text(noted)  # as a process that was killed leaves it
    assert lock.holder() is None
    lock.file.write_text(json.dumps({"host": "elsewhere", "pid": 7, "since": "2026-01-01"}))
    assert lock.holder() is None, "`take` goes on there, with a warning"
