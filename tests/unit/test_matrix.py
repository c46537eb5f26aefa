"""What `make test-matrix` runs together, and how its table is kept."""

from datetime import date
from types import SimpleNamespace

import pytest

from mirrorlake.spark.jars import DELTA_VERSION, SPARK_MINORS
from tests import matrix
from tests.matrix import PYTHONS, Row, cross, parted, with_row

PAGE = f"# Title\n\n{matrix.HEADING}\n|---|---|---|---|---|\n\nbehind\n"


def test_each_spark_once_and_each_python_once() -> None:
    pairs = cross(["4.0", "4.1", "4.2"], ["3.10", "3.11", "3.13"])
    assert pairs == [
        ("4.0", "3.11"), ("4.1", "3.11"), ("4.2", "3.11"), ("4.2", "3.10"), ("4.2", "3.13"),
    ]  # fmt: skip
    assert cross(["4.0", "4.2"], ["3.10"]) == [("4.2", "3.10")]


def test_a_row_replaces_the_one_of_the_same_minor_versions() -> None:
    page = with_row(PAGE, Row("4.2.0", "3.9.1", {"folder": "9 of 9"}))
    page = with_row(page, Row("4.0.5", "3.11.7", {"folder": "9 of 9", "catalog": "8 of 8"}))
    page = with_row(page, Row("4.2.1", "3.9.1", {"catalog": "7 of 8"}))
    head, rows, tail = parted(page)
    assert [row for row in rows if "never" not in row] == [
        f"| 4.0.5 | {DELTA_VERSION} | 3.11.7 | 9 of 9 | 8 of 8 |"
    ]
    assert f"| 4.2.1 | {DELTA_VERSION} | 3.9.1 | never | 7 of 8 |" in rows, "of another patch"
    assert (head, tail) == (PAGE.split("\n")[:4], PAGE.split("\n")[4:])


def test_what_was_not_run_again_of_the_same_versions_is_kept() -> None:
    page = with_row(PAGE, Row("4.2.1", "3.9.1", {"folder": "9 of 9", "catalog": "7 of 8"}))
    (kept,) = [
        row
        for row in parted(with_row(page, Row("4.2.1", "3.9.1", {"catalog": "8 of 8"})))[1]
        if "3.9.1" in row
    ]
    assert kept == f"| 4.2.1 | {DELTA_VERSION} | 3.9.1 | 9 of 9 | 8 of 8 |"


def test_what_was_never_run_is_a_row_that_says_so() -> None:
    rows = parted(with_row(PAGE, Row("4.2.1", "3.11.7", {"folder": "9 of 9"})))[1]
    assert [Row.read(row).minors for row in rows] == sorted(
        Row(*pair).minors for pair in cross(SPARK_MINORS, PYTHONS)
    )
    never = f"| {SPARK_MINORS[0]} | {DELTA_VERSION} | 3.11 | never | never |"
    assert rows[0] == never and Row.read(never).text == never


def test_what_ran_nothing_is_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "environment", lambda _spark, _python: matrix.ROOT / "nowhere")
    said: list[str] = []
    monkeypatch.setattr(matrix, "say", said.append)
    versions = SimpleNamespace(stdout="4.2.1 3.11.7")
    monkeypatch.setattr(matrix.subprocess, "run", lambda *_words, **_more: versions)
    before = matrix.PAGE.read_text(encoding="utf-8")
    assert matrix.main(["--spark", "4.2", "--python", "3.11"]) == 1
    assert "no test of a lake in a folder was run in" in said[-1]
    assert matrix.PAGE.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(("only", "said"), [("", ""), ("a or b", ", only `a or b`")])
def test_a_part_of_the_tests_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, only: str, said: str
) -> None:
    versions = SimpleNamespace(stdout="4.1.3 3.11.7")
    monkeypatch.setattr(matrix.subprocess, "run", lambda *_words, **_more: versions)
    counts = {"folder": (2, 2), "catalog": (1, 3)}
    monkeypatch.setattr(matrix, "_count", lambda _python, lake, *_more: counts[lake])
    row, good = matrix.run_in(matrix.FOLDER, matrix.LAKES, only)
    today = date.today().isoformat()
    assert row.came == {"folder": f"2 of 2, {today}{said}", "catalog": f"1 of 3, {today}{said}"}
    assert (row.spark, row.python, good) == ("4.1.3", "3.11.7", False)
