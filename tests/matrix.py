"""`make test-matrix`: each law once in a folder and once in a catalog, and what has differed
between versions (tests/support/laws.py), with each minor version of Spark and each Python of this
machine; and the table of docs/compatibility.md by what came of it (tests/support/matrix_table.py).

Not each with each, which takes three hours: every Spark on the Python that is developed on, and
every Python with the newest Spark. Environments are kept in `.matrix/`, and in each what became of
each test: a run that is started again goes on with what has not passed (tests/support/
matrix_notes.py), and each has an end.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from mirrorlake.spark.jars import SPARK_MINORS
from tests.support.chunks import WRITTEN, state_of_tree
from tests.support.laws import MATRIX
from tests.support.matrix_notes import Notes
from tests.support.matrix_table import PYTHONS, Result, cross, read, with_result, write

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".matrix"
PAGE = ROOT / "docs" / "compatibility.md"
MINUTES = 60.0
#: How long pytest has to end what it started once its time is over, seconds.
ENDS_SECONDS = 120.0


def interpreter(minor: str) -> str | None:
    """A Python of a minor version that runs: on the path, or of pyenv."""
    name = f"python{minor}"
    found = [shutil.which(name), *map(str, Path.home().glob(f".pyenv/versions/*/bin/{name}"))]
    for path in filter(None, found):
        if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return None


def environment(spark: str, python: str) -> Path | None:
    """An environment of the newest release of a minor version of Spark; None where there is no such
    Python. Raises CalledProcessError where it cannot be made."""
    base = interpreter(python)
    if base is None:
        return None
    folder = FOLDER / f"spark-{spark}-python-{python}"
    uv = shutil.which("uv") or str(ROOT / ".uv" / "bin" / "uv")
    inside = str(folder / "bin" / "python")
    if not folder.is_dir():
        subprocess.run([uv, "venv", "-q", "--python", base, str(folder)], check=True)
    # Built anew, which compiles its C, as by `make env`: uv takes an older build for the same.
    install = [uv, "pip", "install", "-q", "--python", inside, "-e", ".[all]", "--group", "dev"]
    install += ["--reinstall-package", "mirrorlake", f"pyspark[connect]=={spark}.*"]
    subprocess.run(install, cwd=ROOT, check=True)
    # Without the archives sessions only start more slowly.
    subprocess.run([inside, "-m", "mirrorlake.spark.class_archive"], cwd=ROOT, check=False)
    return folder


def run_in(folder: Path, lake: str, only: str, seconds: float) -> Result | None:
    """Run what has not passed of the tests of a kind of lake, of those that -k picks, for so long:
    what came of them, or None where all have passed before. Raises RuntimeError where pytest picks
    none."""
    python = str(folder / "bin" / "python")
    ask = "import platform, pyspark; print(pyspark.__version__, platform.python_version())"
    told = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    spark, version = told.stdout.split()
    file, tree = folder / f"{lake}-{spark}.json", state_of_tree(ROOT)
    notes = Notes.read(file, tree)
    if notes.are_good(only):
        return None
    notes.picked = ()  # who dies before it picks tests has run none
    notes.write(file)
    _pytest(python, lake, file, only, seconds)
    tests, passed, left = Notes.read(file, tree).count()
    if tests == 0:
        raise RuntimeError(f"no test of a lake in a {lake} was run in {folder}")
    today = date.today().isoformat()
    return Result(spark, version, lake, only, tests, passed, left, today, commit())


def _pytest(python: str, lake: str, notes: Path, only: str, seconds: float) -> None:
    """Run the tests; at the end of their time, or of a user's patience, pytest ends what it
    started."""
    marked = [
        str(path)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "mark.matrix" in path.read_text(encoding="utf-8")
    ]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--matrix={lake}"]
    command += [f"--matrix-notes={notes}", "-k", only, *marked]
    with subprocess.Popen(command, cwd=ROOT) as tests:
        try:
            tests.wait(seconds)
        except subprocess.TimeoutExpired:
            say(f"{seconds / 60:.0f} minutes are over")
            tests.send_signal(signal.SIGINT)
            try:
                tests.wait(ENDS_SECONDS)
            except subprocess.TimeoutExpired:
                tests.kill()


def commit() -> str:
    """What is checked out, short; a `+` behind it where something is changed."""
    excluded = [f":(exclude,top){name}" for name in WRITTEN]
    head = ["git", "rev-parse", "--short=8", "HEAD"]
    changes = ["git", "status", "--porcelain", "--untracked-files=no", "--", *excluded]
    name, changed = (
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for command in (head, changes)
    )
    return name.strip() + ("+" if changed else "")


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 if a test failed or was not come to, or an environment could not be
    made."""
    parser = argparse.ArgumentParser(prog="make test-matrix", description=__doc__)
    parser.add_argument("--spark", nargs="+", choices=SPARK_MINORS, default=list(SPARK_MINORS))
    parser.add_argument("--python", nargs="+", choices=PYTHONS, default=list(PYTHONS))
    parser.add_argument("--matrix", choices=("all", *MATRIX), default="all", help="kinds of lakes")
    parser.add_argument("--only", default="", help="some of the tests, as pytest's -k")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="it ends then")
    told = parser.parse_args(words)
    lakes = MATRIX if told.matrix == "all" else (told.matrix,)
    deadline, good = time.monotonic() + told.minutes * 60, True
    for spark, python in cross(told.spark, told.python):
        say(f"Spark {spark}, Python {python}")
        try:
            folder = environment(spark, python)
            if folder is None:
                say(f"there is no Python {python} here")
                continue
            for lake in lakes:
                good &= _run(folder, lake, told.only, deadline)
        except (subprocess.CalledProcessError, RuntimeError) as error:
            say(str(error))
            good = False
    return int(not good)


def _run(folder: Path, lake: str, only: str, deadline: float) -> bool:
    """Run the tests of one kind of lake, and write down what came of them: whether all passed."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        say(f"no time is left for those in a {lake}: the same command goes on with them")
        return False
    result = run_in(folder, lake, only, seconds)
    if result is None:
        say(f"in a {lake}: all have passed before")
        return True
    say(f"in a {lake}: {result.text}")
    write(with_result(read(), result), PAGE)
    return result.passed == result.tests


def say(text: str) -> None:
    """To the terminal, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
