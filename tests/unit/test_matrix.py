"""What `make test-matrix` runs together, how it goes on and ends, and how its table is kept."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.spark.jars import DELTA_VERSION, SPARK_MINORS
from tests import matrix
from tests.support import matrix_notes, matrix_table
from tests.support.matrix_notes import Count, Notes, outcome_of
from tests.support.matrix_table import PYTHONS, Result, cross, minors_of, parted, table, with_result

pytest_plugins = "pytester"
WHOLE = Result("4.2.1", "3.9.1", "folder", "", 9, 9, 0, "2026-11-01", "aaaaaaaa")
PIECE = replace(WHOLE, only="a or b", tests=2, passed=1, commit="bbbbbbbb")


def test_each_spark_once_and_each_python_once() -> None:
    pairs = cross(["4.0", "4.1", "4.2"], ["3.10", "3.11", "3.13"])
    assert pairs == [
        ("4.0", "3.11"), ("4.1", "3.11"), ("4.2", "3.11"), ("4.2", "3.10"), ("4.2", "3.13"),
    ]  # fmt: skip
    assert cross(["4.0", "4.2"], ["3.10"]) == [("4.2", "3.10")]


def test_a_result_replaces_the_same_one_alone() -> None:
    again = replace(WHOLE, passed=8, commit="cccccccc")
    catalog, other = replace(WHOLE, lake="catalog"), replace(WHOLE, spark="4.1.0")
    known: list[Result] = []
    for each in (WHOLE, PIECE, catalog, other, again):
        known = with_result(known, each)
    assert known == [other, catalog, again, PIECE]


def test_of_another_release_nothing_is_kept() -> None:
    newer = replace(WHOLE, spark="4.2.2", lake="catalog")
    assert with_result([WHOLE, PIECE], newer) == [newer]
    delta = replace(newer, delta="9.9.9")
    assert with_result([WHOLE, newer], delta) == [delta]


def test_a_row_says_what_ran_with_which_commit_and_what_never_did() -> None:
    unfinished = replace(WHOLE, lake="catalog", passed=4, left=5)
    rows = table([unfinished, WHOLE, PIECE])
    assert (
        f"| 4.2.1 | {DELTA_VERSION} | 3.9.1 | 9 of 9, 2026-11-01, aaaaaaaa; "
        "1 of 2, 2026-11-01, bbbbbbbb, only `a or b` | 4 of 9, 5 not run, 2026-11-01, aaaaaaaa |"
    ) in rows
    never = [row for row in rows if "3.9.1" not in row]
    assert never[0] == f"| {SPARK_MINORS[0]} | {DELTA_VERSION} | 3.11 | never | never |"
    pairs = cross(SPARK_MINORS, PYTHONS)
    assert len(never) == len(pairs) == len({minors_of(*pair) for pair in pairs})


def test_the_page_has_the_table_of_the_results_that_are_kept() -> None:
    assert parted(matrix.PAGE.read_text(encoding="utf-8"))[1] == table(matrix_table.read())


def test_around_the_table_a_page_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix_table, "RESULTS", tmp_path / "results.json")
    page = tmp_path / "page.md"
    head = ["# Title", "", matrix_table.HEADING, "|---|---|---|---|---|"]
    page.write_text("\n".join([*head, "| of before |", "", "behind", ""]), encoding="utf-8")
    matrix_table.write([WHOLE], page)
    said = parted(page.read_text(encoding="utf-8"))
    assert said == (head, table([WHOLE]), ["", "behind", ""])
    assert matrix_table.read() == [WHOLE]


@pytest.mark.parametrize(
    ("phases", "outcome"),
    [
        (["passed"] * 3, "passed"),
        (["skipped", "passed"], "skipped"),
        (["passed", "failed", "passed"], "failed"),
        (["passed", "skipped", "failed"], "failed"),
    ],
)
def test_a_test_has_failed_where_any_part_of_it_has(phases: list[str], outcome: str) -> None:
    assert outcome_of(phases) == outcome


TESTS = """
import pytest
def test_a(): pass
def test_b(): {b}
@pytest.mark.skip
def test_c(): pass
def test_d(): {d}
"""


@pytest.fixture
def noted(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a file of tests: what is noted of them then, and which ones were run."""
    monkeypatch.setattr(matrix_notes, "state_of_tree", lambda _root: "tree")

    def run(*options: str, b: str = "pass", d: str = "pass") -> tuple[Notes, list[str]]:
        pytester.makepyfile(test_f=TESTS.format(b=b, d=d))
        file = pytester.path / "notes.json"
        plugin = ("-p", "tests.support.matrix_notes", f"--matrix-notes={file}", *options)
        outcome = pytester.inline_run(*plugin, no_reraise_ctrlc=True)
        calls = outcome.getcalls("pytest_runtest_logreport")
        names = [call.report.nodeid.partition("::")[2] for call in calls]
        return Notes.read(file, "tree"), list(dict.fromkeys(names))

    return run


def test_what_was_interrupted_goes_on_with_what_has_not_passed(noted: Any) -> None:
    notes, ran = noted(b="assert False", d="raise KeyboardInterrupt")
    assert (notes.count(), ran[:3]) == (Count(3, 1, 1), ["test_a", "test_b", "test_c"])
    notes, ran = noted()
    assert (notes.count(), ran) == (Count(3, 3, 0), ["test_b", "test_d"])
    assert notes.are_good("") and noted()[1] == []


def test_a_part_of_the_tests_is_counted_alone_and_not_run_again(noted: Any) -> None:
    notes, ran = noted("-k", "test_a or test_b")
    assert (notes.count(), ran) == (Count(2, 2, 0), ["test_a", "test_b"])
    assert notes.are_good("test_a or test_b") and not notes.are_good(""), "the others are not known"
    notes, ran = noted()
    assert (notes.count(), ran) == (Count(3, 3, 0), ["test_c", "test_d"])


def test_notes_about_something_else_count_for_nothing(noted: Any, tmp_path: Path) -> None:
    noted()
    (file,) = Path.cwd().glob("notes.json")
    assert Notes.read(file, "tree").outcomes
    for tree in ("another", ""):
        assert Notes.read(file, tree) == Notes(tree)
    assert Notes.read(tmp_path / "none", "tree") == Notes("tree")


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment whose tests are a program of the test's own, with results of its own."""
    monkeypatch.setattr(matrix, "environment", lambda _spark, _python: tmp_path)
    monkeypatch.setattr(matrix, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(matrix_table, "RESULTS", tmp_path / "results.json")
    matrix_table.RESULTS.write_text("[]", encoding="utf-8")
    page = f"{matrix_table.HEADING}\n|---|---|---|---|---|\n"
    matrix.PAGE.write_text(page, encoding="utf-8")
    monkeypatch.setattr(matrix, "commit", lambda: "aaaaaaaa")
    versions = SimpleNamespace(stdout="4.2.1 3.11.7")
    monkeypatch.setattr(matrix.subprocess, "run", lambda *_words, **_more: versions)
    monkeypatch.setattr(matrix, "state_of_tree", lambda _root: "tree")
    return tmp_path


ONE = ("--spark", "4.2", "--python", "3.11")


def test_what_ran_nothing_is_no_result(
    cell: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Notes("tree", {"test_a": "passed"}, ["test_a"], "a").write(cell / "folder-4.2.1.json")
    monkeypatch.setattr(matrix, "_pytest", lambda *_words: None)
    assert matrix.main(ONE) == 1
    assert "no test of a lake in a folder was run in" in capsys.readouterr().out
    assert matrix_table.read() == []


def test_what_has_passed_is_not_started_again_and_an_end_is_kept(
    cell: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[str] = []

    def tests(_python: str, lake: str, file: Path, _only: str, _seconds: float) -> None:
        started.append(lake)
        outcome = "passed" if lake == "folder" or started.count(lake) > 1 else "failed"
        Notes("tree", {"test_a": outcome}, ["test_a"]).write(file)

    monkeypatch.setattr(matrix, "_pytest", tests)
    assert matrix.main([*ONE, "--minutes", "0"]) == 1 and started == []
    assert "goes on" in capsys.readouterr().out
    assert (matrix.main(ONE), matrix.main(ONE), matrix.main(ONE)) == (1, 0, 0)
    assert started == ["folder", "catalog", "catalog"]
    assert [(each.lake, each.passed) for each in matrix_table.read()] == [
        ("catalog", 1), ("folder", 1),
    ]  # fmt: skip
    assert "1 of 1" in matrix.PAGE.read_text(encoding="utf-8")


def test_at_its_end_pytest_ends_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = tmp_path / "ended"
    program = (
        "import pathlib, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "print('begun', flush=True)\n"
        "signal.sigwait({signal.SIGINT})\n"
        f"pathlib.Path({str(ended)!r}).touch()\n"
    )
    popen = subprocess.Popen

    def begun(*_words: object, **_more: object) -> "subprocess.Popen[str]":
        """Its time begins once it waits, however long a loaded machine takes for that."""
        process = popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        return process

    monkeypatch.setattr(matrix.subprocess, "Popen", begun)
    matrix._pytest(sys.executable, "folder", tmp_path / "notes", "", 0.1)
    assert ended.exists()
    assert "minutes are over" in capsys.readouterr().out


def test_results_are_kept_as_text_that_a_commit_shows_line_by_line() -> None:
    text = matrix_table.RESULTS.read_text(encoding="utf-8")
    assert all(set(each) == set(vars(WHOLE)) for each in json.loads(text))
