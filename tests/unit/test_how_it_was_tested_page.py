"""docs/how_it_was_tested.md says what the tests do."""

import re
from pathlib import Path

from tests.simulation.run import STEPS
from tests.support.laws import LAWS

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs" / "how_it_was_tested.md").read_text(encoding="utf-8").split())


def number(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.DOTALL)
    assert found is not None, pattern
    return found[1]


def test_numbers_of_the_page_are_those_of_the_tests() -> None:
    simulation = (ROOT / "tests" / "simulation" / "test_simulation.py").read_text(encoding="utf-8")
    mutations = (ROOT / "tests" / "simulation" / "test_mutations.py").read_text(encoding="utf-8")
    chaos = (ROOT / "tests" / "chaos" / "real.py").read_text(encoding="utf-8")
    bugs = number(r"\nBUGS.+? = \((.+?)\n\)", mutations)
    assert int(number(r"There are (\d+) laws", PAGE)) == len(LAWS)
    assert int(number(r"schedules of (\d+) steps", PAGE)) == STEPS
    assert number(r"runs (\d+) schedules", PAGE) == number(r'SCHEDULES = "(\d+)"', simulation)
    assert int(number(r"plants (\d+) bugs", PAGE)) == bugs.count(",")
    most = number(r"FULL_SECONDS.+? = \(.+?, (\d+)\.0\)", chaos)
    assert number(r"disk for up to (\d+) seconds", PAGE) == most


def test_make_has_what_the_page_calls() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in {*re.findall(r"`make ([a-z-]+)|\bmake ([a-z-]+) {2,}", PAGE)}:
        assert re.search(rf"^{''.join(target)}:", makefile, re.MULTILINE), target
