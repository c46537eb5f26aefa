"""Builds the wheel for Databricks into dist/databricks: the one that everybody gets.

It requires neither pyspark nor anything else that the runtime brings, which pip would replace when
a job's cluster starts: those are extras. Run by `databricks bundle deploy`; needs hatchling, or uv,
or pip.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def built(directory: Path) -> Path:
    """The wheel as everybody gets it: made here without a network where the compiled loops of
    `native/` are, as after `make env`; else by uv or pip, which fetch a compiler; without the loops
    if that fails too."""
    commands = [
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            str(directory),
            str(ROOT),
        ]
    ]
    if uv := shutil.which("uv"):
        commands = [[uv, "build", "--quiet", "--wheel", "--out-dir", str(directory)]]
    if find_spec("hatchling"):
        commands.insert(
            0, [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
        )
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        wheels = list(directory.glob("*.whl"))
        if wheels and has_loops(wheels[0]):
            break
    if not wheels:
        done.check_returncode()
    return wheels[0]


def has_loops(wheel: Path) -> bool:
    """Whether a wheel holds what hatch_build.py compiles."""
    with zipfile.ZipFile(wheel) as file:
        return any(
            name.startswith("mirrorlake/native/") and name.endswith(".so")
            for name in file.namelist()
        )


def main() -> None:
    """Build it; an older wheel is removed."""
    out = ROOT / "dist" / "databricks"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as directory:
        wheel = built(Path(directory))
        shutil.copy(wheel, out)


if __name__ == "__main__":
    main()
