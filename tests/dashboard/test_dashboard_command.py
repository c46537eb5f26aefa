"""`mirrorlake dashboard` as a person starts it: a process that serves a page here until it is told
to end."""

import json
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from tests.support.replication import start_command, write_topology


@pytest.mark.slow
def test_it_serves_until_it_is_told_to_end(tmp_path: Path) -> None:
    """Over a lake without a row; nothing answers at the clusters' addresses, and nobody asks
    there."""
    topology = write_topology(tmp_path, "127.0.0.1:1", "127.0.0.1:2", {"topics": ["orders"]})
    command = start_command(topology, "dashboard", "--port", "0", "--no-open")
    try:
        url = _url(tmp_path / "run.log", command)
        with urllib.request.urlopen(url, timeout=60) as answer:
            page = answer.read().decode()
        assert "<html" in page and str(tmp_path / "lake") in page
        with urllib.request.urlopen(f"{url.rstrip('/')}/data.json", timeout=120) as answer:
            assert json.load(answer)
        command.send_signal(signal.SIGTERM)
        assert command.wait(60) == 0
    finally:
        command.kill()
        command.wait()
    said = (tmp_path / "run.log").read_text(encoding="utf-8")
    assert said.rstrip().endswith("ended") and "Traceback" not in said


def _url(log: Path, command: "subprocess.Popen[bytes]") -> str:
    """The address in the command's own words."""
    deadline = time.monotonic() + 120
    while not (
        found := re.search(
            r"dashboard at (http://127\.0\.0\.1:\d+\S*)", log.read_text(encoding="utf-8")
        )
    ):
        assert command.poll() is None and time.monotonic() < deadline, log.read_text(
            encoding="utf-8"
        )
        time.sleep(0.2)
    return found.group(1)
