"""The results of `make test-matrix` that are known, tests/matrix.json, and the table of
docs/compatibility.md that is made of them.

A result is of one kind of lake in one environment, and of all its tests or of those that -k picked
(`only`). It replaces what was known of the same, and leaves other results alone; of another release
of the same minor versions none is kept, since the row names what ran.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mirrorlake.spark.jars import DELTA_VERSION, SPARK_MINORS
from tests.support.laws import MATRIX

RESULTS = Path(__file__).parents[1] / "matrix.json"
PYTHONS, USUAL_PYTHON = ("3.10", "3.11", "3.12", "3.13"), "3.11"
HEADING = "| Spark | Delta | Python | in a folder | in a catalog |"
NEVER = "never"


@dataclass(frozen=True)
class Result:
    """What came of the tests of a kind of lake: of `tests` that were picked, how many passed and
    how many were not come to, on which day (YYYY-MM-DD) and with which commit."""

    spark: str
    python: str
    lake: str
    only: str
    tests: int
    passed: int
    left: int
    day: str
    commit: str
    delta: str = DELTA_VERSION

    @property
    def versions(self) -> tuple[str, str, str]:
        """The releases, as the table has them."""
        return self.spark, self.delta, self.python

    @property
    def minors(self) -> tuple[tuple[int, ...], ...]:
        """The minor versions of Spark and of Python: a row."""
        return minors_of(self.spark, self.python)

    @property
    def text(self) -> str:
        """How it stands in a cell."""
        left = f", {self.left} not run" if self.left else ""
        only = f", only `{self.only}`" if self.only else ""
        return f"{self.passed} of {self.tests}{left}, {self.day}, {self.commit}{only}"


def minors_of(*versions: str) -> tuple[tuple[int, ...], ...]:
    """Of each version its first two numbers. Pure."""
    return tuple(tuple(int(part) for part in text.split(".")[:2]) for text in versions)


def cross(sparks: Sequence[str], pythons: Sequence[str]) -> list[tuple[str, str]]:
    """Which Spark with which Python: all of them with the usual Python, and all Pythons with the
    last of them. Pure."""
    pairs = [(spark, USUAL_PYTHON) for spark in sparks] if USUAL_PYTHON in pythons else []
    return [*pairs, *((sparks[-1], python) for python in pythons if python != USUAL_PYTHON)]


def with_result(known: Iterable[Result], fresh: Result) -> list[Result]:
    """What is known once there is a fresh result, in order. Pure."""
    kept = [each for each in known if not _replaces(fresh, each)]
    return sorted([*kept, fresh], key=lambda each: (each.minors, each.lake, each.only))


def _replaces(fresh: Result, known: Result) -> bool:
    same = (fresh.lake, fresh.only) == (known.lake, known.only)
    return fresh.minors == known.minors and (same or fresh.versions != known.versions)


def table(known: Sequence[Result]) -> list[str]:
    """The rows of the table, in the order of versions; where nothing was run it says so. Pure."""
    rows = {minors_of(*pair): pair for pair in cross(SPARK_MINORS, PYTHONS)}
    rows |= {each.minors: (each.spark, each.python) for each in known}
    lines = []
    for minors, (spark, python) in sorted(rows.items()):
        of_row = [each for each in known if each.minors == minors]
        delta = of_row[0].delta if of_row else DELTA_VERSION
        texts = [[each.text for each in of_row if each.lake == lake] for lake in MATRIX]
        cells = ["; ".join(text) or NEVER for text in texts]
        lines.append(f"| {' | '.join([spark, delta, python, *cells])} |")
    return lines


def with_table(page: str, known: Sequence[Result]) -> str:
    """A page with the table of what is known instead of the one that it has. Pure."""
    head, _, tail = parted(page)
    return "\n".join([*head, *table(known), *tail])


def parted(page: str) -> tuple[list[str], list[str], list[str]]:
    """The lines before the rows of the table, the rows, and the lines behind them."""
    lines = page.split("\n")
    first = lines.index(HEADING) + 2
    end = next((at for at in range(first, len(lines)) if not lines[at].startswith("|")), first)
    return lines[:first], lines[first:end], lines[end:]


def read() -> list[Result]:
    """The results that are known."""
    return [Result(**each) for each in json.loads(RESULTS.read_text(encoding="utf-8"))]


def write(known: Sequence[Result], page: Path) -> None:
    """Keep results, and a page's table of them."""
    text = json.dumps([asdict(each) for each in known], indent=1)
    RESULTS.write_text(f"{text}\n", encoding="utf-8")
    page.write_text(with_table(page.read_text(encoding="utf-8"), known), encoding="utf-8")
