"""No law without a test on each way (tests/support/laws.py): lane, engine, session, kind of
lake."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.laws import BY_SPARK, IN_STORE, LAWS, MAKE_TEST, MATRIX, WAYS, ways_of

TESTS = Path(__file__).parents[1]
#: What no test proves, and why none has to.
HOLES = {
    (
        "never backwards",
        "lane python",
    ): "positions of groups pass no lane: the admin client moves them"
}


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[str]]]:
    """The tests by law and way, as a collection finds them, slow ones too."""
    table = tmp_path_factory.mktemp("laws") / "table.json"
    marked = [
        str(path)
        for path in sorted(TESTS.rglob("test_*.py"))
        if "mark.law(" in path.read_text(encoding="utf-8")
    ]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--law-table", str(table)]
    ended = subprocess.run(
        [*command, *marked],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-3_000:] + ended.stderr[-3_000:]
    return dict(json.loads(table.read_text(encoding="utf-8")))


def test_each_law_is_proven_on_each_way(proofs: dict[str, dict[str, list[str]]]) -> None:
    every = {
        (law, f"{kind} {name}") for law in LAWS for kind, names in WAYS.items() for name in names
    }
    proven = {(law, way) for law, ways in proofs.items() for way in ways}
    assert sorted(every - proven - HOLES.keys()) == [], (
        "no test proves these, and HOLES has no reason"
    )
    assert sorted(proven & HOLES.keys()) == [], (
        "these are proven now, so HOLES must not excuse them"
    )
    assert HOLES.keys() <= every, "no such law or way"


@pytest.mark.parametrize("lake", MATRIX)
def test_each_law_is_proven_on_each_spark(
    proofs: dict[str, dict[str, list[str]]], lake: str
) -> None:
    """By `make test-matrix`."""
    assert [law for law in LAWS if not proofs[law].get(f"matrix {lake}")] == []


def test_each_law_is_proven_by_make_test(proofs: dict[str, dict[str, list[str]]]) -> None:
    assert [law for law in LAWS if not proofs[law].get(MAKE_TEST)] == []


def test_what_ways_a_test_goes() -> None:
    assert ways_of([], {}) == {"lane native", "engine duckdb", "session with", "lake folder"}
    assert ways_of(["python", 7], {"session": ("with", "without")}) == {
        "lane python", "engine duckdb", "session with", "session without", "lake folder"
    }  # fmt: skip
    assert ways_of(["catalog"], {}) == {
        "lane native", "engine duckdb", "session with", "lake catalog"
    }  # fmt: skip
    assert ways_of([BY_SPARK, "no session"], {}) == {
        "lane native",
        "engine spark",
        "session without",
        "lake catalog",
    }
    assert ways_of([IN_STORE], {}) == {
        "lane native", "engine duckdb", "session without", "lake store"
    }  # fmt: skip
    for wrong in ({"lane": "java"}, {"lanes": "native"}):
        with pytest.raises(pytest.UsageError, match="no such way"):
            ways_of([], wrong)
