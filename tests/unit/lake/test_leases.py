"""A lease is not free only because a lock of this host says so, nor because there are no locks."""

import errno
import fcntl
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from mirrorlake.errors import LakeError, LeaseTaken
from mirrorlake.lake.file_lock import FileLock
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import Lease, locks_work
from mirrorlake.lake.place import place_of

WHAT = "flow a->b"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """All that a lease asks of a lake."""
    return cast(Lake, SimpleNamespace(leases=place_of(tmp_path / "leases")))


def file_of(lease: Lease) -> Path:
    assert isinstance(lease.lock, FileLock)
    return lease.lock.file


def no_locks(_handle: object, _how: int) -> None:
    """As a volume that knows none."""
    raise OSError(errno.ENOLCK, "No locks available")


def test_one_that_another_host_has_not_given_back_is_not_free(lake: Lake) -> None:
    lease = Lease(lake, WHAT)
    file = file_of(lease)
    lease.take(sure=True)
    lease.release()
    assert file.read_text() == "", "given back"
    other = json.dumps({"host": "elsewhere", "pid": 7, "since": "2026-01-01T00:00:00+00:00"})
    file.write_text(other)
    for _ in range(2):
        with pytest.raises(
            LakeError, match=r"process 7 on elsewhere since .* still has flow a->b cannot be known"
        ):
            Lease(lake, WHAT).take(sure=True)
    assert json.loads(file.read_text()) == json.loads(other), "to ask takes nothing away"
    lease.take()  # `run` goes on where that process died
    with pytest.raises(LeaseTaken):
        Lease(lake, WHAT).take(sure=True)
    lease.release()
    last = Lease(lake, WHAT)
    last.take(sure=True)
    last.release()


def test_one_of_a_process_of_this_host_that_was_killed_is_free(lake: Lake) -> None:
    killed = Lease(lake, WHAT)
    killed.take()
    noted = file_of(killed).read_text()
    killed.release()
    file_of(killed).write_text(noted)
    Lease(lake, WHAT).take(sure=True)


def test_locks_that_fail_are_none(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    assert locks_work(lake) and not list(lake.leases.glob("probe-*"))
    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert not locks_work(lake) and not list(lake.leases.glob("probe-*"))
    with pytest.raises(LakeError, match=r"whether another process has flow a->b cannot be known"):
        Lease(lake, WHAT).take(sure=True)


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_that_is_full_takes_no_lock_away(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who goes on without one may meet another process hours later, each fencing the other."""
    lease = Lease(lake, WHAT)
    with monkeypatch.context() as out_of_room:
        out_of_room.setattr(os, "open", full)
        with pytest.raises(OSError, match="No space left"):
            lease.take()
    with monkeypatch.context() as out_of_room:
        out_of_room.setattr(os, "pwrite", full)
        lease.take()
    assert "who has flow a->b is not noted (No space left on device)" in caplog.text
    with pytest.raises(LeaseTaken, match="is held by another process"):
        Lease(lake, WHAT).take()
    lease.release()
    Lease(lake, WHAT).take(sure=True)
