"""Builds the wheel for Databricks into dist/databricks: the one that `uv build` makes, but for what the runtime brings.

There Spark and Delta are part of the runtime. A wheel that required pyspark would have it installed over them, from
PyPI, when a job's cluster starts. Run by `databricks bundle deploy`; needs hatchling, or uv, or pip.
"""

import base64
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Distributions of the runtime that must not be replaced.
OF_THE_RUNTIME = ("pyspark", "delta-spark")


def built(directory: Path) -> Path:
    """The wheel as everybody gets it: made here without a network where the compiled loops of `native/` are, as after
    `make env`; else by uv or pip, which fetch a compiler; without the loops if that fails too."""
    commands = [
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(directory), str(ROOT)]
    ]
    if uv := shutil.which("uv"):
        commands = [[uv, "build", "--quiet", "--wheel", "--out-dir", str(directory)]]
    if find_spec("hatchling"):
        commands.insert(0, [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)])
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
        return any(name.startswith("mirrorlake/native/") and name.endswith(".so") for name in file.namelist())


def without(metadata: str) -> str:
    """The wheel's METADATA without the requirements that the runtime fulfils."""
    lines = metadata.splitlines(keepends=True)
    starts = tuple(f"Requires-Dist: {name}" for name in OF_THE_RUNTIME)
    return "".join(line for line in lines if not line.startswith(starts))


def repacked(wheel: Path, target: Path) -> None:
    """Rewrite the wheel; the same input gives the same bytes."""
    with zipfile.ZipFile(wheel) as source:
        contents = {name: source.read(name) for name in source.namelist()}
    record = next(name for name in contents if name.endswith(".dist-info/RECORD"))
    metadata = record.replace("RECORD", "METADATA")
    contents[metadata] = without(contents[metadata].decode()).encode()
    contents.pop(record)
    rows = [f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in contents.items()]
    contents[record] = "".join([*rows, f"{record},,\n"]).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in contents.items():
            file.writestr(zipfile.ZipInfo(name, (2020, 2, 2, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def main() -> None:
    """Build it; an older wheel is removed."""
    out = ROOT / "dist" / "databricks"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as directory:
        wheel = built(Path(directory))
        repacked(wheel, out / wheel.name)


if __name__ == "__main__":
    main()
