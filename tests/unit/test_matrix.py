"""What `make test-matrix` runs together, and how its table is kept."""

import pytest

from tests import matrix
from tests.matrix import Row, cross, minors, parted, with_row

PAGE = f"# Title\n\n{matrix.HEADING}\n|---|---|---|---|---|\n\nbehind\n"


def row(spark: str, python: str, passed: int = 9) -> Row:
    return Row(spark, "4.4.0", python, "laws", passed, 9)


def test_each_spark_once_and_each_python_once() -> None:
    pairs = cross(["4.0", "4.1", "4.2"], ["3.10", "3.11", "3.13"], "3.11")
    assert pairs == [
        ("4.0", "3.11"), ("4.1", "3.11"), ("4.2", "3.11"), ("4.2", "3.10"), ("4.2", "3.13"),
    ]  # fmt: skip
    assert cross(["4.0", "4.2"], ["3.10"], "3.11") == [("4.2", "3.10")]


def test_a_row_replaces_the_one_of_the_same_minor_versions() -> None:
    page = with_row(with_row(PAGE, row("4.2.0", "3.9.1")), row("4.0.5", "3.11.7"))
    page = with_row(page, row("4.2.1", "3.10.13", passed=8))
    page = with_row(page, row("4.2.1", "3.9.2"))
    head, rows, tail = parted(page)
    assert [minors(line) for line in rows] == [
        ((4, 0), (3, 11)), ((4, 2), (3, 9)), ((4, 2), (3, 10)),
    ]  # fmt: skip
    assert rows[1] == "| 4.2.1 | 4.4.0 | 3.9.2 | laws | 9 of 9 |" and "| 8 of 9 |" in rows[2]
    assert (head, tail) == (PAGE.split("\n")[:4], PAGE.split("\n")[4:])


def test_what_ran_nothing_is_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "environment", lambda _spark, _python: matrix.ROOT / "nowhere")
    said: list[str] = []
    monkeypatch.setattr(matrix, "say", said.append)
    monkeypatch.setattr(matrix.subprocess, "run", lambda *_words, **_more: None)
    before = matrix.PAGE.read_text(encoding="utf-8")
    assert matrix.main(["--spark", "4.2", "--python", "3.11"]) == 1
    assert "no test was run in" in said[-1]
    assert matrix.PAGE.read_text(encoding="utf-8") == before
