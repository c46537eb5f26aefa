"""`make test-matrix`: the tests of every law with each minor version of Spark and each Python of
this machine, and the table of docs/compatibility.md by what came of it.

Not each with each, which takes three hours: every Spark on the Python that this is run with, and
every Python with the newest Spark that it is developed on. Environments are kept in `.matrix/`.
"""

import argparse
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from mirrorlake.spark.jars import DELTA_VERSION, SPARK_MINORS

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".matrix"
PAGE = ROOT / "docs" / "compatibility.md"
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
LAWS = "law and not slow"
HEADING = "| Spark | Delta | Python | tests | passed |"


@dataclass(frozen=True)
class Row:
    """What came of one environment: versions as installed, the marks of the tests that were run,
    and how many passed of how many."""

    spark: str
    delta: str
    python: str
    tests: str
    passed: int
    run: int

    @property
    def text(self) -> str:
        """Its line of the table."""
        passed = f"{self.passed} of {self.run}"
        return f"| {self.spark} | {self.delta} | {self.python} | {self.tests} | {passed} |"


def cross(sparks: Sequence[str], pythons: Sequence[str], usual: str) -> list[tuple[str, str]]:
    """Which Spark with which Python: all of them with the `usual` Python, and all Pythons with the
    last of them. Pure."""
    pairs = [(spark, usual) for spark in sparks] if usual in pythons else []
    rest = [python for python in pythons if python != usual]
    return [*pairs, *((sparks[-1], python) for python in rest)]


def with_row(page: str, row: Row) -> str:
    """The page with a row in its table, instead of what is there for the same minor versions, in
    the order of versions. Pure."""
    head, table, tail = parted(page)
    rows = {minors(line): line for line in table} | {minors(row.text): row.text}
    return "\n".join([*head, *(rows[key] for key in sorted(rows)), *tail])


def parted(page: str) -> tuple[list[str], list[str], list[str]]:
    """The lines before the rows of the table, the rows, and the lines behind them."""
    lines = page.split("\n")
    first = lines.index(HEADING) + 2
    end = next((at for at in range(first, len(lines)) if not lines[at].startswith("|")), first)
    return lines[:first], lines[first:end], lines[end:]


def minors(line: str) -> tuple[tuple[int, ...], ...]:
    """The minor versions of Spark and of Python in a row."""
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    return tuple(tuple(int(part) for part in cells[at].split(".")[:2]) for at in (0, 2))


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
    install = [uv, "pip", "install", "-q", "--python", inside, "-e", ".[all]", "--group", "dev"]
    subprocess.run([*install, f"pyspark[connect]=={spark}.*"], cwd=ROOT, check=True)
    return folder


def run_in(folder: Path, tests: Sequence[str], marks: str) -> Row:
    """Run tests in an environment, as `make test` does. Raises RuntimeError where pytest ran
    none."""
    python, report = str(folder / "bin" / "python"), folder / "report.xml"
    # Without the archives sessions only start more slowly.
    subprocess.run([python, "-m", "mirrorlake.spark.class_archive"], cwd=ROOT, check=False)
    report.unlink(missing_ok=True)
    workers = ["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"]
    command = [python, "-m", "pytest", "-q", "-m", marks, f"--junitxml={report}"]
    command += ["-p", "no:cacheprovider", *workers, *tests]
    subprocess.run(command, cwd=ROOT, check=False)
    suites = list(ElementTree.parse(report).getroot()) if report.exists() else []
    count = {
        name: sum(int(suite.get(name, 0)) for suite in suites)
        for name in ("tests", "failures", "errors", "skipped")
    }
    run = count["tests"] - count["skipped"]
    if run == 0:
        raise RuntimeError(f"no test was run in {folder}")
    ask = "import platform, pyspark; print(pyspark.__version__, platform.python_version())"
    told = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    spark, version = told.stdout.split()
    what = " ".join(f"`{test}`" for test in tests) if tests else "laws"
    passed = run - count["failures"] - count["errors"]
    return Row(spark, DELTA_VERSION, version, what, passed, run)


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 if a test failed, or an environment could not be made."""
    parser = argparse.ArgumentParser(prog="make test-matrix", description=__doc__)
    parser.add_argument("--spark", nargs="+", choices=SPARK_MINORS, default=list(SPARK_MINORS))
    parser.add_argument("--python", nargs="+", choices=PYTHONS, default=list(PYTHONS))
    parser.add_argument("--marks", default=LAWS, help="which tests, as pytest's -m")
    parser.add_argument("tests", nargs="*", help="files of tests instead of all")
    told = parser.parse_args(words)
    usual = ".".join(platform.python_version_tuple()[:2])
    failed = False
    for spark, python in cross(told.spark, told.python, usual):
        say(f"Spark {spark}, Python {python}")
        try:
            folder = environment(spark, python)
            if folder is None:
                say(f"there is no Python {python} here")
                continue
            row = run_in(folder, told.tests, told.marks)
        except (subprocess.CalledProcessError, RuntimeError) as error:
            say(str(error))
            failed = True
            continue
        say(row.text)
        failed |= row.passed < row.run
        PAGE.write_text(with_row(PAGE.read_text(encoding="utf-8"), row), encoding="utf-8")
    return int(failed)


def say(text: str) -> None:
    """To the terminal, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
