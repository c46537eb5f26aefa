"""Behind a process that was killed, commands do not look for samples of it: its lease says that it
is gone."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mirrorlake.failover.drain import _is_free
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.file_lock import FileLock
from mirrorlake.lake.lease import Lease
from mirrorlake.naming.worker_groups import work_of_flow
from mirrorlake.run import other_process
from mirrorlake.run.leases import Leases, lease_of_flow
from tests.support.lake_rows import FLOW, no_session, opened, write_file

#: How often it was looked for samples.
looks: list[object] = []


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    looks.clear()
    monkeypatch.setattr(other_process, "run_by_other_process", lambda *_: looks.append(1))
    lake, topology = opened(no_session, write_file(tmp_path))
    return Deployment(lake, Connections(topology), EventLog(lake))


def note(deployment: Deployment, host: str, pid: int) -> None:
    """A process has the lease of the flow, and does not give it back."""
    lock = Lease(deployment.lake, work_of_flow(FLOW)).lock
    assert isinstance(lock, FileLock)
    holder = {"host": host, "pid": pid, "since": "2026-01-01T00:00:00+00:00"}
    lock.file.parent.mkdir(parents=True, exist_ok=True)
    lock.file.write_text(json.dumps(holder), encoding="utf-8")


def dead() -> int:
    """A process that is gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def free(deployment: Deployment) -> bool:
    return _is_free(deployment, deployment.connections.topology.flow(FLOW))[0]


def test_one_of_this_host_that_was_killed_is_gone_for_each_command_behind_it(
    deployment: Deployment,
) -> None:
    note(deployment, socket.gethostname(), dead())
    flow = deployment.connections.topology.flow(FLOW)
    for _ in range(2):
        assert free(deployment) and not looks
        # as the drain that follows
        lease = Leases(deployment, once=True, brief=True).of_flow(flow)
        lease.take()
        lease.release()
    forgets = lease_of_flow(deployment, FLOW)
    forgets.take(sure=True)
    assert not other_process.runs_elsewhere(deployment.lake, FLOW, forgets) and not looks
    forgets.release()
    run = Leases(deployment).of_flow(flow)
    run.take()
    run.release()
    assert free(deployment) and looks, "who ran it behind that has given it back"


def test_another_host_takes_it_for_given_back_once_a_command_has_had_it(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(deployment, socket.gethostname(), dead())
    assert free(deployment) and not looks
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    assert free(deployment) and looks


def test_of_any_other_one_the_samples_tell(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(deployment, "elsewhere", dead())
    assert not free(deployment) and not looks, "it has not given it back"
    monkeypatch.setattr("mirrorlake.lake.lease_holder.Holder.lives", True)
    note(deployment, socket.gethostname(), dead())
    assert free(deployment) and looks, "its number is that of another process by now"
