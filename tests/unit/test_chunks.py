"""The slow tests in chunks (tests/support/chunks.py): every test in one of them, and what passed is
not run again."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support import chunks
from tests.support.chunks import deal, parsed

pytest_plugins = "pytester"
TESTS = """
import pytest
def test_first(): pass
def test_fails(): assert {fails}
def test_interrupts():
    if {interrupts}: raise KeyboardInterrupt
@pytest.mark.skip
def test_skipped(): pass
def test_last(): pass
"""


@pytest.fixture
def tree(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Two files of tests in a git repository."""
    pytester.makepyfile(
        test_a=TESTS.format(fails=False, interrupts=True), test_b="def test_b(): pass"
    )
    seconds = pytester.path / "seconds.json"
    seconds.write_text('{"test_a.py": 9, "test_b.py": 1}', encoding="utf-8")
    monkeypatch.setattr(chunks, "SECONDS_FILE", seconds)
    (pytester.path / ".gitignore").write_text("*\n!test_*.py\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=pytester.path, check=True)
    commit(pytester.path)
    return pytester


def commit(folder: Path) -> None:
    """Commit everything."""
    who = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    subprocess.run(["git", *who, "commit", "-qm", "tests", "--allow-empty"], cwd=folder, check=True)


def ran(tree: pytest.Pytester, *options: str) -> tuple[list[str], int]:
    """The tests that a chunk ran, and pytest's exit code."""
    outcome = tree.inline_run("-p", "tests.support.chunks", *options, no_reraise_ctrlc=True)
    names = [
        call.report.nodeid.partition("::")[2]
        for call in outcome.getcalls("pytest_runtest_logreport")
    ]
    return list(dict.fromkeys(names)), int(outcome.ret)


def test_files_are_dealt_evenly_and_each_once() -> None:
    seconds = {"a": 50.0, "b": 30.0, "c": 30.0, "d": 20.0, "e": 20.0, "f": 0.0}
    dealt = deal(seconds, 3)
    assert sorted(name for chunk in dealt for name in chunk) == sorted(seconds)
    assert [sum(seconds[name] for name in chunk) for chunk in dealt] == [50.0, 50.0, 50.0]
    assert deal(dict(reversed(seconds.items())), 3) == dealt
    assert deal({"a": 1.0}, 2) == [["a"], []]


@pytest.mark.parametrize("text", ["3", "0/8", "9/8", "a/b", "1/0"])
def test_a_chunk_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="written as 3/8"):
        parsed(text)


def test_an_interrupted_chunk_goes_on_with_what_has_not_passed(tree: pytest.Pytester) -> None:
    names, code = ran(tree, "--chunk", "1/2")
    assert names[:2] == ["test_first", "test_fails"] and code == pytest.ExitCode.INTERRUPTED
    assert ran(tree, "--chunk", "2/2") == (["test_b"], pytest.ExitCode.OK)
    assert ran(tree, "--chunk", "2/2") == ([], pytest.ExitCode.OK)
    names, code = ran(tree, "--chunk", "1/2", "--deselect", "test_a.py::test_interrupts")
    assert (
        names == ["test_fails", "test_skipped", "test_last"]
        and code == pytest.ExitCode.TESTS_FAILED
    )
    assert ran(tree, "--chunk", "1/2", "--deselect", "test_a.py::test_interrupts")[0] == [
        "test_fails"
    ]


def test_a_chunk_reads_its_own_files_and_every_file_is_in_some_chunk(tree: pytest.Pytester) -> None:
    (tree.path / "test_a.py").write_text("raise AssertionError('read')", encoding="utf-8")
    (tree.path / "below").mkdir()
    (tree.path / "below" / "test_c.py").write_text("def test_c(): pass", encoding="utf-8")
    names, code = ran(tree, "--chunk", "2/2")
    assert (sorted(names), code) == (["test_b", "test_c"], pytest.ExitCode.OK)
    assert ran(tree, "--chunk", "1/2")[1] == pytest.ExitCode.INTERRUPTED


def test_what_another_chunk_has_passed_is_not_run_again(tree: pytest.Pytester) -> None:
    assert ran(tree, "--chunk", "2/2")[0] == ["test_b"]
    # the files change places
    chunks.SECONDS_FILE.write_text('{"test_a.py": 1, "test_b.py": 9}', encoding="utf-8")
    assert ran(tree, "--chunk", "1/2") == ([], pytest.ExitCode.OK)
    ran(tree, "--chunk", "2/2", "--deselect", "test_a.py::test_interrupts")
    assert (
        "test_first"
        not in ran(tree, "--chunk", "2/2", "--deselect", "test_a.py::test_interrupts")[0]
    )


def test_after_a_change_everything_is_run_again(tree: pytest.Pytester) -> None:
    assert ran(tree, "--chunk", "2/2")[0] == ["test_b"]
    for change in (
        "def test_b(): pass\ndef test_c(): pass\n",
        "def test_b(): pass\ndef test_d(): pass\n",
    ):
        (tree.path / "test_b.py").write_text(change, encoding="utf-8")
        assert ran(tree, "--chunk", "2/2")[0][0] == "test_b"
        assert ran(tree, "--chunk", "2/2")[0] == []
    commit(tree.path)
    assert len(ran(tree, "--chunk", "2/2")[0]) == 2


def test_how_long_a_file_took_is_noted_when_all_of_it_ran(tree: pytest.Pytester) -> None:
    ran(tree, "--note-seconds", "--deselect", "test_a.py::test_interrupts")
    noted = json.loads(chunks.SECONDS_FILE.read_text(encoding="utf-8"))
    assert noted["test_a.py"] == 9 and noted["test_b.py"] < 1  # a test of the first failed
