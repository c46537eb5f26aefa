"""`pytest --matrix catalog --matrix-notes FILE`: what became of each test, noted as it ends, for
`make test-matrix`.

What has passed with what is checked out is not run again, so that a run that was stopped, or was of
some of the tests only (-k), is gone on with.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.chunks import state_of_tree

DONE = ("passed", "skipped")


class Count(NamedTuple):
    """Of the tests that were picked, but those that are skipped: how many there are, have passed,
    and have not been run."""

    tests: int
    passed: int
    left: int


@dataclass
class Notes:
    """What is known of an environment's tests of one kind of lake.

    Attributes:
        tree: what was checked out (`state_of_tree`).
        outcomes: by test, of each that was run: passed, failed or skipped.
        picked: the tests that the last run was to run, and what its -k was (`only`).
    """

    tree: str
    outcomes: dict[str, str] = field(default_factory=dict)
    picked: Sequence[str] = ()
    only: str = ""

    @classmethod
    def read(cls, file: Path, tree: str) -> "Notes":
        """What a file says of what is checked out; nothing where it is about something else."""
        kept = json.loads(file.read_text(encoding="utf-8")) if tree and file.exists() else {}
        return cls(**kept) if kept.get("tree") == tree else cls(tree)

    def write(self, file: Path) -> None:
        """Keep them; who is killed meanwhile leaves what was there."""
        beside = file.with_suffix(".new")
        beside.write_text(json.dumps(vars(self), indent=1), encoding="utf-8")
        beside.replace(file)

    def are_good(self, only: str) -> bool:
        """Whether all tests have passed that -k picks by this."""
        count = self.count()
        return self.only == only and 0 < count.tests == count.passed

    def count(self) -> Count:
        """Of the tests picked."""
        known = [self.outcomes.get(test) for test in self.picked]
        tests = len(known) - known.count("skipped")
        return Count(tests, known.count("passed"), known.count(None))


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "note there what becomes of each test, and leave out what it says has passed"
    parser.addoption("--matrix-notes", type=Path, help=text)


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--matrix-notes")
    if file is not None:
        config.pluginmanager.register(_Noting(file, state_of_tree(config.rootpath)))


class _Noting:
    def __init__(self, file: Path, tree: str) -> None:
        self._file = file
        self._notes = Notes.read(file, tree)
        self._phases: dict[str, list[str]] = {}

    @pytest.hookimpl(trylast=True)  # behind what --matrix and -k leave out
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave the tests that are not done."""
        self._notes.picked = [item.nodeid for item in items]
        self._notes.only = config.getoption("keyword")
        self._notes.write(self._file)
        left = [item for item in items if self._notes.outcomes.get(item.nodeid) not in DONE]
        config.hook.pytest_deselected(items=[item for item in items if item not in left])
        items[:] = left

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test at its end."""
        phases = self._phases.setdefault(report.nodeid, [])
        phases.append(report.outcome)
        if report.when == "teardown":
            self._notes.outcomes[report.nodeid] = outcome_of(phases)
            self._notes.write(self._file)


def outcome_of(phases: Sequence[str]) -> str:
    """What a test came to whose setup, call and teardown came to this. Pure."""
    return next((worse for worse in ("failed", "skipped") if worse in phases), "passed")
