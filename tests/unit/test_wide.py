"""What `make test` leaves to CI (`wide`, tests/support/wide.py) is proven by something that it
has, or says why by nothing."""

import pytest

from tests.support.wide import Module, files, marks, module_of, parsed, runs

#: What has to be shown on real brokers and real Delta in the ten minutes of `make test`, and where.
KEPT = {
    "kill -9": "integration/test_crash.py::test_driver_killed_at_point_after_point",
}
#: Files of tests/integration of which every test is slow: what `make test` has instead, or why it
#: has nothing.
SLOW_ALONE: dict[str, str] = {}


def test_each_mark_names_a_test_of_make_test_or_says_why_none() -> None:
    wrong = [
        f"{mark.file}:{mark.line}: {name}"
        for mark in marks()
        for name in mark.named or [mark.because]
        if not (runs(name) if mark.named else name)
    ]
    assert wrong == [], "make test does not run these, or the mark says nothing"


def test_each_file_of_integration_has_a_test_in_make_test_or_a_reason() -> None:
    left_out = {file for file in files("integration") if not module_of(file).tests}
    slow = {file for file in left_out if not module_of(file).wide}
    assert slow == SLOW_ALONE.keys()
    wrong = [of for of in SLOW_ALONE.values() if "::" in of and not runs(of)]
    assert wrong == [], "make test does not run these"


@pytest.mark.parametrize("name", KEPT.values(), ids=KEPT.keys())
def test_make_test_shows(name: str) -> None:
    assert runs(name), f"make test does not run {name}"


def test_marks_are_read_from_decorators_names_lists_and_parameters() -> None:
    module = parsed("a/test_a.py", TEXT)
    assert module == Module(
        {
            "test_runs": frozenset(),
            "test_slow": frozenset({"slow"}),
            "test_wide": frozenset({"wide"}),
        },
        module.wide,
    )
    assert [(mark.named, mark.because) for mark in module.wide] == [
        (("a/test_a.py::test_runs",), ""),
        (("b/test_b.py::test_b",), ""),
        ((), "it takes a minute"),
        ((), ""),
    ]
    whole = parsed("a/test_a.py", "pytestmark = [pytest.mark.wide('test_b')]\ndef test_c(): pass")
    assert whole.tests == []


TEXT = """
SLOW = pytest.mark.slow

@pytest.mark.parametrize("one", [1, pytest.param(2, marks=pytest.mark.wide("test_runs"))])
@pytest.mark.parametrize("two", [1, pytest.param(2, marks=SLOW)])
def test_runs(one, two): pass

@SLOW
def test_slow(): pass

@pytest.mark.wide("b/test_b.py::test_b")
def test_wide(): pass

ODD = [
    pytest.mark.wide(because="it takes a minute"),
    pytest.mark.wide,
]
"""
