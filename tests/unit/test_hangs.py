"""A test that no exception ends takes its process with it, and says where it stood."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HANGS = """
import threading

def test_hangs():
    try:
        threading.Event().wait()
    finally:
        waits_for_ever()

def waits_for_ever():
    threading.Event().wait()
"""
RUN = """
import sys
import pytest
from tests.support import hangs

hangs.GRACE_SECONDS = 0.5
sys.exit(pytest.main([*sys.argv[1:], "--timeout", "0.5"], plugins=[hangs]))
"""


def test_its_process_ends_and_prints_where_each_thread_stood(tmp_path: Path) -> None:
    (tmp_path / "test_hangs.py").write_text(HANGS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]", encoding="utf-8")
    command = [sys.executable, "-c", RUN, "-c", "pytest.ini", "test_hangs.py"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "in waits_for_ever" in done.stderr, done
