"""A library may end a process by a fault of its own, past all that Python could say."""

import signal
import subprocess
import sys
from pathlib import Path

CRASH = """
import os, signal
from mirrorlake.cli.main import app, main

@app.command()
def crash():
    os.kill(os.getpid(), signal.SIGSEGV)

main()
"""


def test_its_end_leaves_a_word(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASH, "crash"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.startswith("Fatal Python error: Segmentation fault")
