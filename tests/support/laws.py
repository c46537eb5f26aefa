"""Laws and ways: which test proves which law on which way, as tests say it by the mark `law`.

    @pytest.mark.law("exactly once", "exact map", session="without")

A way of records through this program is a value of each of WAYS. A marked test goes the usual ways,
except for what the mark says, and for what a parameter of the test says by its value: `lane`
(tests/support/lanes.py) is native in one run of the test and python in the other.
`tests/unit/test_laws_and_ways.py` fails for a law that no test proves on some way.

`@pytest.mark.matrix` are the few tests that `make test-matrix` runs on each Spark and each Python:
each law by Spark in a folder and in a catalog, and what has differed between versions. `--matrix
folder` or `--matrix catalog` runs those of such a lake alone.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.support.wide import LEFT_OUT

LAWS = (
    "stage first",
    "exactly once",  # and in order
    "exact map",
    "nothing silently",
    "never backwards",
    "stage is the truth",
    "progress is offsets",
    "kept by generation",
    "never more than was seen",
)
#: What can be one way or another: how records pass this process, who answers what is asked of the
#: lake, whether a Spark session is there, and where the tables are.
WAYS: Mapping[str, tuple[str, ...]] = {
    "lane": ("native", "python"),
    "engine": ("duckdb", "spark"),
    "session": ("with", "without"),
    "lake": ("folder", "catalog", "store"),
}
#: The kinds of lake of `make test-matrix`: of one in a store no version of Spark reads a table.
MATRIX = ("folder", "catalog")
USUAL = {kind: names[0] for kind, names in WAYS.items()}
#: A parameter of tests: a catalog about whose tables only Spark answers.
BY_SPARK = "catalog by Spark"
#: Another one: a lake in an object store, of which commands are run that start no session.
IN_STORE = "no session, store"
#: A way of the table: by a test that `make test` runs.
MAKE_TEST = "make test"
#: Parameters of tests that mean a way by another word.
WORDS = {"no session": "without", "session": "with", "path": "folder"}


def ways_of(parameters: Iterable[object], declared: Mapping[str, str | Iterable[str]]) -> set[str]:
    """The ways that a test goes, as `lane native`. Raises UsageError for a way that is none.
    Pure."""
    words = [WORDS.get(value, value) for value in parameters if isinstance(value, str)]
    gone: dict[str, set[str]] = {}
    for kind, names in WAYS.items():
        said = declared.get(kind, [word for word in words if word in names] or USUAL[kind])
        gone[kind] = {said} if isinstance(said, str) else set(said)
    if BY_SPARK in words:  # whatever of its files is at hand
        gone["lake"], gone["engine"] = {"catalog"}, {"spark"}
    if IN_STORE in words:
        gone["lake"], gone["session"] = {"store"}, {"without"}
    wrong = sorted(declared.keys() - WAYS.keys()) + [
        name for kind, found in gone.items() for name in sorted(found - set(WAYS[kind]))
    ]
    if wrong:
        raise pytest.UsageError(
            f"{', '.join(wrong)}: no such way; see WAYS of tests/support/laws.py"
        )
    return {f"{kind} {name}" for kind, found in gone.items() for name in found}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--law-table",
        type=Path,
        help="write which of the collected tests prove which law on which way",
    )
    parser.addoption(
        "--matrix",
        choices=MATRIX,
        help="run the tests marked `matrix` of such a lake, and no others",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "law(*laws, **ways): what the test proves, and how (tests/support/laws.py)"
    )
    config.addinivalue_line(
        "markers", "matrix(**ways): for each Spark and each Python (tests/support/laws.py)"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what `--matrix` asks for."""
    lake = config.getoption("--matrix")
    if lake is not None:
        kept = {item for item in items if lake in matrix_lakes(item)}
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]


def matrix_lakes(item: pytest.Item) -> list[str]:
    """In which kinds of lake `make test-matrix` runs a test."""
    mark = item.get_closest_marker("matrix")
    if mark is None:
        return []
    ways = _ways_of(item, *item.iter_markers("law"), mark)
    return [lake for lake in MATRIX if f"lake {lake}" in ways]


def _ways_of(item: pytest.Item, *marks: pytest.Mark) -> set[str]:
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    return ways_of(parameters, {kind: way for mark in marks for kind, way in mark.kwargs.items()})


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write {law: {way: [tests]}}; `matrix folder` are those by Spark that are of the matrix, and
    MAKE_TEST those that it runs."""
    if session.config.getoption("--law-table") is None:
        return
    found: dict[str, dict[str, list[str]]] = {law: defaultdict(list) for law in LAWS}
    for item in session.items:
        for mark in item.iter_markers("law"):
            if unknown := set(mark.args) - set(LAWS):
                raise pytest.UsageError(f"{item.nodeid}: {', '.join(unknown)}: no such law")
            ways = _ways_of(item, mark)
            if "session with" in ways:
                ways |= {f"matrix {lake}" for lake in matrix_lakes(item)}
            if not any(item.get_closest_marker(mark) for mark in LEFT_OUT):
                ways.add(MAKE_TEST)
            for law in mark.args:
                for way in ways:
                    found[law][way].append(item.nodeid)
    session.config.getoption("--law-table").write_text(json.dumps(found), encoding="utf-8")
