"""The wheel that everybody gets: installed into an empty environment, it has all it needs."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.bundle import ROOT, build_wheel, uv


def test_everything_that_is_not_code_is_in_the_wheel(tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(tmp_path)) as file:
        packed = {name.removeprefix("mirrorlake/") for name in file.namelist()}
    kept = [
        path for path in (ROOT / "src" / "mirrorlake").rglob("*") if path.is_file() and "__pycache__" not in str(path)
    ]
    assert {str(path.relative_to(ROOT / "src" / "mirrorlake")) for path in kept} <= packed


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_the_demo_runs_from_a_wheel_in_an_empty_environment(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path)
    python = tmp_path / "empty" / "bin" / "python"
    if (found := uv()) is not None:
        make = [[found, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "empty")],
                [found, "pip", "install", "--quiet", "--python", str(python), str(wheel)]]  # fmt: skip
    else:
        make = [[sys.executable, "-m", "venv", str(tmp_path / "empty")],
                [str(python), "-m", "pip", "install", "--quiet", str(wheel)]]  # fmt: skip
    for command in make:
        subprocess.run(command, check=True, timeout=1200)
    work = tmp_path / "work"
    work.mkdir()
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    for name in ("HOME", "JAVA_HOME", "MIRRORLAKE_CACHE", "MIRRORLAKE_CORES"):
        if name in os.environ:
            environment[name] = os.environ[name]
    done = subprocess.run(
        [str(python.parent / "mirrorlake"), "demo"],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
