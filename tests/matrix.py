"""`make test-matrix`: each law once in a folder and once in a catalog, and what has differed
between versions (tests/support/laws.py), with each minor version of Spark and each Python of this
machine; and the table of docs/compatibility.md by what came of it.

Not each with each, which takes three hours: every Spark on the Python that is developed on, and
every Python with the newest Spark. Environments are kept in `.matrix/`.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

from mirrorlake.spark.jars import DELTA_VERSION, SPARK_MINORS
from tests.support.laws import MATRIX

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".matrix"
PAGE = ROOT / "docs" / "compatibility.md"
PYTHONS, USUAL_PYTHON = ("3.10", "3.11", "3.12", "3.13"), "3.11"
LAKES = MATRIX
HEADING = "| Spark | Delta | Python | in a folder | in a catalog |"
NEVER = "never"


@dataclass(frozen=True)
class Row:
    """What came of one environment: versions as installed, and of the tests of each kind of lake
    that were run how many passed, and when."""

    spark: str
    python: str
    came: Mapping[str, str] = field(default_factory=dict)
    delta: str = DELTA_VERSION

    @property
    def text(self) -> str:
        """Its line of the table."""
        cells = [self.came.get(lake, NEVER) for lake in LAKES]
        return f"| {' | '.join([self.spark, self.delta, self.python, *cells])} |"

    @classmethod
    def read(cls, line: str) -> "Row":
        """The row of a line of the table."""
        spark, delta, python, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        came = {lake: cell for lake, cell in zip(LAKES, cells, strict=True) if cell != NEVER}
        return cls(spark, python, came, delta)

    @property
    def minors(self) -> tuple[tuple[int, ...], ...]:
        """The minor versions of Spark and of Python."""
        versions = (self.spark, self.python)
        return tuple(tuple(int(part) for part in text.split(".")[:2]) for text in versions)

    def over(self, before: "Row") -> "Row":
        """This one, with what was run earlier of the same versions and not now. Pure."""
        same = (before.spark, before.python, before.delta) == (self.spark, self.python, self.delta)
        return Row(self.spark, self.python, {**(before.came if same else {}), **self.came})


def cross(sparks: Sequence[str], pythons: Sequence[str]) -> list[tuple[str, str]]:
    """Which Spark with which Python: all of them with the usual Python, and all Pythons with the
    last of them. Pure."""
    pairs = [(spark, USUAL_PYTHON) for spark in sparks] if USUAL_PYTHON in pythons else []
    return [*pairs, *((sparks[-1], python) for python in pythons if python != USUAL_PYTHON)]


def with_row(page: str, row: Row) -> str:
    """The page with a row in its table, instead of what is there for the same minor versions, in
    the order of versions; where nothing was run yet the table says so. Pure."""
    head, table, tail = parted(page)
    never = [Row(*pair) for pair in cross(SPARK_MINORS, PYTHONS)]
    rows = {each.minors: each for each in (*never, *map(Row.read, table))}
    rows[row.minors] = row.over(rows.get(row.minors, row))
    return "\n".join([*head, *(rows[key].text for key in sorted(rows)), *tail])


def parted(page: str) -> tuple[list[str], list[str], list[str]]:
    """The lines before the rows of the table, the rows, and the lines behind them."""
    lines = page.split("\n")
    first = lines.index(HEADING) + 2
    end = next((at for at in range(first, len(lines)) if not lines[at].startswith("|")), first)
    return lines[:first], lines[first:end], lines[end:]


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


def run_in(folder: Path, lakes: Sequence[str], only: str = "") -> tuple[Row, bool]:
    """Run the tests of kinds of lakes in an environment, `only` those that pytest's -k picks: what
    came of it, and whether all passed.
    Raises RuntimeError where pytest ran none."""
    python = str(folder / "bin" / "python")
    # Without the archives sessions only start more slowly.
    subprocess.run([python, "-m", "mirrorlake.spark.class_archive"], cwd=ROOT, check=False)
    ask = "import platform, pyspark; print(pyspark.__version__, platform.python_version())"
    told = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    spark, version = told.stdout.split()
    came, good = {}, True
    for lake in lakes:
        passed, run = _count(python, lake, folder / f"{lake}.xml", only)
        if run == 0:
            raise RuntimeError(f"no test of a lake in a {lake} was run in {folder}")
        came[lake] = f"{passed} of {run}, {date.today().isoformat()}"
        came[lake] += f", only `{only}`" if only else ""
        good &= passed == run
    return Row(spark, version, came), good


def _count(python: str, lake: str, report: Path, only: str) -> tuple[int, int]:
    """How many tests passed, and of how many."""
    report.unlink(missing_ok=True)
    marked = [
        str(path)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "mark.matrix" in path.read_text(encoding="utf-8")
    ]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    subprocess.run([*command, f"--matrix={lake}", "-k", only, *marked], cwd=ROOT, check=False)
    suites = list(ElementTree.parse(report).getroot()) if report.exists() else []
    count = {
        name: sum(int(suite.get(name, 0)) for suite in suites)
        for name in ("tests", "failures", "errors", "skipped")
    }
    run = count["tests"] - count["skipped"]
    return run - count["failures"] - count["errors"], run


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 if a test failed, or an environment could not be made."""
    parser = argparse.ArgumentParser(prog="make test-matrix", description=__doc__)
    parser.add_argument("--spark", nargs="+", choices=SPARK_MINORS, default=list(SPARK_MINORS))
    parser.add_argument("--python", nargs="+", choices=PYTHONS, default=list(PYTHONS))
    parser.add_argument("--matrix", choices=("all", *LAKES), default="all", help="kinds of lakes")
    parser.add_argument("--only", default="", help="some of the tests, as pytest's -k")
    told = parser.parse_args(words)
    lakes = LAKES if told.matrix == "all" else (told.matrix,)
    failed = False
    for spark, python in cross(told.spark, told.python):
        say(f"Spark {spark}, Python {python}")
        try:
            folder = environment(spark, python)
            if folder is None:
                say(f"there is no Python {python} here")
                continue
            row, good = run_in(folder, lakes, told.only)
        except (subprocess.CalledProcessError, RuntimeError) as error:
            say(str(error))
            failed = True
            continue
        say(row.text)
        failed |= not good
        PAGE.write_text(with_row(PAGE.read_text(encoding="utf-8"), row), encoding="utf-8")
    return int(failed)


def say(text: str) -> None:
    """To the terminal, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
