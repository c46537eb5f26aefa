"""`pytest -m slow --chunk 3/8`: the third of eight parts that take about as long each, and go on
where they stopped.

Whole files are dealt to chunks, by the seconds that each took when `--note-seconds` wrote them down
last: what the fixtures of a file start is so started once, and a chunk reads no file of another
one. What passed is remembered in pytest's cache for as long as nothing in the working tree changes:
the same chunk, started again after it was interrupted, runs the tests that have not passed yet.
Each chunk has a note of its own there, so that two may run side by side. pytest-split deals single
tests, and pytest's own `--last-failed` and `--stepwise` know nothing of a test that was never
reached.
"""

import hashlib
import json
import os
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest

#: Seconds by file, of its slow tests.
SECONDS_FILE = Path(__file__).parents[1] / "slow_seconds.json"
#: What runs of tests write themselves: no change of what is tested.
WRITTEN = (f"tests/{SECONDS_FILE.name}", "tests/matrix.json", "docs/compatibility.md")
#: What a file without an entry is taken for, seconds: most have no slow test.
UNKNOWN_SECONDS = 1.0
_PASSED = "chunks/passed-{}-of-{}"


def deal(seconds: Mapping[str, float], chunks: int) -> list[list[str]]:
    """Deal files, the longest first, each to the chunk that has least so far. Pure, and the same
    each time."""
    dealt: list[list[str]] = [[] for _ in range(chunks)]
    sums = [0.0] * chunks
    for name in sorted(seconds, key=lambda name: (-seconds[name], name)):
        least = sums.index(min(sums))
        dealt[least].append(name)
        sums[least] += seconds[name]
    return dealt


def parsed(text: str) -> tuple[int, int]:
    """Which chunk, from 1 on, of how many. Raises UsageError."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    chunk, chunks = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= chunk <= chunks:
        raise pytest.UsageError(f"--chunk is {text}: it is written as 3/8, the third of eight")
    return chunk, chunks


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("chunks")
    group.addoption(
        "--chunk",
        help="I/N: run the I-th of N parts, without the tests of it that have passed before",
    )
    group.addoption(
        "--note-seconds",
        action="store_true",
        help=f"write to {SECONDS_FILE.name} how long files took",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--chunk") or config.getoption("--note-seconds"):
        config.pluginmanager.register(Chunks(config))


class Chunks:
    """Picks the tests of a chunk, remembers those that passed, and how long their files took."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._noted: dict[str, float] = json.loads(SECONDS_FILE.read_text(encoding="utf-8"))
        self._tree = state_of_tree(config.rootpath)
        self._chunk, self._chunks = parsed(config.getoption("--chunk") or "1/1")
        self._mine = self._dealt(config) if config.getoption("--chunk") else None
        self._passed = self._remembered()
        self._outcomes: dict[str, set[str]] = defaultdict(set)
        self._seconds: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self._line = ""

    def _dealt(self, config: pytest.Config) -> set[str]:
        """The files of the chunk, of all that hold tests: one without a slow test is in some chunk
        too."""
        root = config.rootpath
        folders = [root / folder for folder in config.getini("testpaths") or ["."]]
        files = {path for folder in folders for path in folder.rglob("test_*.py")}
        names = [path.relative_to(root).as_posix() for path in files]
        seconds = {name: self._noted.get(name, UNKNOWN_SECONDS) for name in names}
        return set(deal(seconds, self._chunks)[self._chunk - 1])

    def pytest_ignore_collect(
        self, collection_path: Path, config: pytest.Config
    ) -> Literal[True] | None:
        """Leave the files of other chunks unread."""
        if self._mine is None or not re.fullmatch(r"test_.*\.py", collection_path.name):
            return None
        name = collection_path.relative_to(config.rootpath).as_posix()
        return None if name in self._mine else True

    def _remembered(self) -> set[str]:
        """The tests that have passed in any chunk: a file may have been dealt to another one
        before."""
        cache = self._config.cache
        if cache is None or not self._tree:
            return set()
        notes = [
            cache.get(_PASSED.format(chunk, self._chunks), {})
            for chunk in range(1, self._chunks + 1)
        ]
        return {test for note in notes if note.get("tree") == self._tree for test in note["tests"]}

    @pytest.hookimpl(trylast=True)  # behind what -m and -k leave out
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave the tests of the chunk that have not passed."""
        tests = Counter(map(_file, items))
        if self._mine is not None:
            left = [item for item in items if item.nodeid not in self._passed]
            config.hook.pytest_deselected(items=[item for item in items if item not in set(left)])
            about = sum(self._noted.get(name, UNKNOWN_SECONDS) for name in tests)
            self._line = (
                f"chunk {self._chunk}/{self._chunks}: {len(tests)} files of about {about:.0f} s, "
                f"{len(items) - len(left)} tests have passed before"
            )
            items[:] = left
        # Of a file of which some tests passed before nothing is to be learned.
        self._running = Counter(
            {name: n for name, n in Counter(map(_file, items)).items() if n == tests[name]}
        )

    def pytest_report_collectionfinish(self) -> str:
        """Say which chunk it is."""
        return self._line

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a test at its end; one that is skipped here is done too."""
        name = report.nodeid.partition("::")[0]
        self._outcomes[report.nodeid].add(report.outcome)
        self._seconds[name] += report.duration
        if report.when != "teardown" or "failed" in self._outcomes[report.nodeid]:
            return
        self._running[name] -= 1
        self._passed.add(report.nodeid)
        if self._config.cache is not None and self._tree:
            note = {"tree": self._tree, "tests": sorted(self._passed)}
            self._config.cache.set(_PASSED.format(self._chunk, self._chunks), note)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A chunk of which all has passed before is no error."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._config.getoption("--chunk"):
            session.exitstatus = pytest.ExitCode.OK
        if self._config.getoption("--note-seconds"):
            whole = {
                name: round(self._seconds[name], 1)
                for name, left in self._running.items()
                if left == 0
            }
            # by now: others run side by side
            noted = json.loads(SECONDS_FILE.read_text(encoding="utf-8"))
            text = json.dumps(dict(sorted((noted | whole).items())), indent=1)
            SECONDS_FILE.write_text(f"{text}\n", encoding="utf-8")


def state_of_tree(root: Path) -> str:
    """What files are checked out, whatever the commit is called, with every change to them but to
    WRITTEN. Empty where git does not know: nothing is remembered then."""
    others = ["--", *(f":(exclude,top){name}" for name in WRITTEN)]
    told = hashlib.sha256()
    try:
        told.update(_git(root, "ls-files", "--stage", *others) + _git(root, "diff", *others))
        names = _git(root, "ls-files", "--others", "--exclude-standard", "-z", *others)
        for name in names.split(b"\0"):
            told.update(name + (root / os.fsdecode(name)).read_bytes() if name else b"")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return told.hexdigest()


def _git(root: Path, *command: str) -> bytes:
    return subprocess.run(["git", *command], cwd=root, capture_output=True, check=True).stdout


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]
