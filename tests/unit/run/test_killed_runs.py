"""A run that was killed on its way is not healthy, for as long as none has gone on."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.objectives import Mode, note_objectives
from mirrorlake.lake.starts import note_start
from mirrorlake.run.status import read_status
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, ago, no_session, opened, sample, table_of, write_file

KILLED_AT = "2026-11-28T12:00:00+00:00"


def status(directory: Path, lake: Lake, mode: Mode) -> dict[str, Any]:
    topology = opened(no_session, directory / "mirrorlake.yml")[1]
    note_objectives(lake, topology, {FLOW: mode})
    clusters = {name: MemoryCluster(name, {}) for name in ("east", "west", "north")}
    return read_status(lake.now, Connections(topology, clusters), lake.stored_id)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = opened(no_session, write_file(tmp_path))[0]
    note_start(lake, FLOW, "earliest", {})
    return lake


def leave(lake: Lake, host: str, pid: int, since: str = KILLED_AT) -> None:
    """A process has the lease of the flow, by what it noted there."""
    lock = Lease(lake, f"flow {FLOW}").lock
    lock.file.parent.mkdir(parents=True, exist_ok=True)  # type: ignore[union-attr]
    noted = json.dumps({"host": host, "pid": pid, "since": since})
    lock.file.write_text(noted, encoding="utf-8")  # type: ignore[union-attr]


def dead_process() -> int:
    told = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    return int(told.stdout)


@pytest.mark.parametrize(("mode", "command"), [("once", "run --once"), ("continuous", "run")])
def test_one_that_was_killed_needs_attention_until_the_next_one(
    lake: Lake, tmp_path: Path, mode: Mode, command: str
) -> None:
    assert status(tmp_path, lake, mode)["healthy"], "none has ever been killed"
    leave(lake, socket.gethostname(), dead_process())
    found = status(tmp_path, lake, mode)
    assert not found["healthy"] and [row["alert"] for row in found["alerts"]] == ["not_running"]
    assert f"`{command}` was killed before it came to its end" in found["attention"][0]
    with Lease(lake, f"flow {FLOW}"):
        assert status(tmp_path, lake, mode)["healthy"], "it goes on"
    assert status(tmp_path, lake, mode)["healthy"], "and came to its end"


def test_one_whose_number_another_process_has_by_now_was_killed(lake: Lake, tmp_path: Path) -> None:
    """As where a container starts again under its name, and all in it have the numbers of those
    before."""
    leave(lake, socket.gethostname(), os.getpid())
    found = status(tmp_path, lake, "once")
    assert not found["healthy"] and [row["alert"] for row in found["alerts"]] == ["not_running"]


def test_of_what_is_run_or_known_elsewhere_nothing_is_said(lake: Lake, tmp_path: Path) -> None:
    leave(lake, "another-host", 1)
    found = status(tmp_path, lake, "once")
    assert found["healthy"]
    (sentence,) = [line for line in found["unchecked"] if "another-host" in line]
    assert "whether `run --once` of flow east->west still runs, or was killed" in sentence
    unchecked = status(tmp_path, lake, "continuous")["unchecked"]
    assert not any("another-host" in line for line in unchecked), "its samples tell"
    leave(lake, socket.gethostname(), dead_process())
    assert status(tmp_path, lake, "stopped")["healthy"]


@pytest.mark.parametrize(
    ("began", "sampled", "goes_on"),
    [(60, 3, True), (60, 90, False), (900, 300, False)],
    ids=["of late", "before it began", "long ago"],
)
def test_samples_show_whether_one_of_another_host_goes_on(
    lake: Lake, tmp_path: Path, began: int, sampled: int, goes_on: bool
) -> None:
    leave(lake, "another-host", 1, ago(began).isoformat(timespec="seconds"))
    lake.append("positions", table_of([sample(sampled, 10, 10)]))
    unchecked = status(tmp_path, lake, "once")["unchecked"]
    assert any("another-host" in line for line in unchecked) is not goes_on


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("once", marks=pytest.mark.wide("test_one_that_came_to_its_end_runs_no_more")),
        "continuous",
    ],
)
def test_one_that_came_to_its_end_runs_no_more(lake: Lake, tmp_path: Path, mode: Mode) -> None:
    """However young its last sample is; where no file was ever locked that is not known."""

    def standing() -> str:
        return str(status(tmp_path, lake, mode)["flows"][0]["standing"])

    lake.append("positions", table_of([sample(3, 10, 30)]))
    assert standing() == "running"
    with Lease(lake, f"flow {FLOW}"):
        assert standing() == "running"
    assert standing().startswith("stopped since ")
    leave(lake, "another-host", 1)
    assert standing() == "running"
    leave(lake, socket.gethostname(), dead_process())
    assert standing().startswith("stopped since ")
