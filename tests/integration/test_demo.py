"""The demo, as a newcomer starts it: its story is told in order, and each thing it says is true."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

CHAPTERS = (
    "Starting two Kafka clusters",
    "Producing",
    "Killing the driver",
    "Starting it again",
    "Comparing",
    "Killing east",
    "The tables are in",
)


@pytest.mark.slow
def test_the_script_is_played_to_its_end(tmp_path: Path) -> None:
    """A crash and a lost cluster, 9,000 records: all there, each once, for the group that was moved
    too."""
    command = [sys.executable, "-m", "mirrorlake", "demo", "--records", "9000", "--json"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=360, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = re.findall(rf"(\d)/{len(CHAPTERS)} ({'|'.join(CHAPTERS)})", done.stderr)
    assert told == [(str(number), chapter) for number, chapter in enumerate(CHAPTERS, 1)]
    outcome = json.loads(done.stdout)
    lake = str(tmp_path / "mirrorlake-demo" / "lake")
    assert outcome.pop("offset") == outcome.pop("back") and outcome.pop("translated") >= 0
    assert outcome == {
        "produced": 9_000,
        "verified": 9_000,
        "target_records": 9_000,
        "equal": True,
        "group_read_twice": 0,
        "group_never_read": 0,
        "lake": lake,
    }
    assert "FAIL" not in done.stderr and "Traceback" not in done.stderr, (
        "a lost cluster is told in one sentence"
    )
    log = (tmp_path / "mirrorlake-demo" / "run.log").read_text(encoding="utf-8")
    assert "leaked" not in log and "Traceback" not in log
    again = [
        sys.executable,
        "-m",
        "mirrorlake",
        "-c",
        "mirrorlake-demo/mirrorlake.yml",
        "sql",
        "--json",
    ]
    query = "SELECT sum(record_count) AS n FROM offset_map WHERE topic = 'orders'"
    answer = subprocess.run(
        [*again, query], capture_output=True, text=True, timeout=120, cwd=tmp_path, check=True
    )
    assert json.loads(answer.stdout) == [{"n": 9_000}]
