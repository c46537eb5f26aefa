"""What tests share is in tests/support: no test imports from another one, which would be changed
for its own sake, nor from another kind of tests."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.syntax import syntax_of

TESTS = Path(__file__).parents[1]
#: A test module that a text names: what a process of its own is to import.
_NAMED = re.compile(r"\btests(?:\.\w+)*\.test_\w+")
#: Which modules import from elsewhere than tests/support and their own folder, and why.
_BROKEN = "what it proves is that tests fail: it runs them on broken code"
_JUDGED = "it is a test of that arithmetic"
DOORS = {
    ("chaos/__main__.py", "tests.simulation.kinds"): "chaos without processes is the simulation",
    ("simulation/kinds.py", "tests.simulation.test_"): "it is the table of what they draw",
    ("simulation/test_mutations.py", "tests.simulation.test_before_the_session"): _BROKEN,
    ("simulation/test_mutations.py", "tests.simulation.test_found"): _BROKEN,
    ("simulation/test_mutations.py", "tests.simulation.test_two_processes"): _BROKEN,
    ("unit/devtools/test_bench_capacity.py", "tests.bench."): _JUDGED,
    ("unit/devtools/test_bench_executors.py", "tests.bench."): _JUDGED,
    ("unit/devtools/test_bench_parts.py", "tests.bench."): _JUDGED,
    ("unit/test_how_it_was_tested_page.py", "tests.simulation.run"): "the page names its figures",
    ("unit/test_positions_of_chaos.py", "tests.chaos.groups"): "it is a test of that judgement",
}


def named(text: str) -> set[str]:
    """The modules of tests that code imports, or names in a text that is run."""
    nodes = list(ast.walk(syntax_of(text)))
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            modules.update(() if id(node) in documents else _NAMED.findall(node.value))
    return {module for module in modules if module.startswith("tests.")}


def strangers(file: str, modules: set[str]) -> set[str]:
    """Those that a module, by its path within tests, must not import from."""
    own = f"tests.{file.partition('/')[0]}."
    return {
        module
        for module in modules
        if any(part.startswith("test_") for part in module.split("."))
        or not (module.startswith(("tests.support.", own)) or (TESTS / f"{module[6:]}.py").exists())
    }


def door(file: str, module: str) -> tuple[str, str] | None:
    return next((pair for pair in DOORS if pair[0] == file and module.startswith(pair[1])), None)


#: All but this one, which names strangers to see that they are seen.
FILES = sorted(path for path in TESTS.rglob("*.py") if path != Path(__file__))


def test_what_tests_share_is_support() -> None:
    used, wrong = set(), dict[str, set[str]]()
    for path in FILES:
        file = str(path.relative_to(TESTS))
        for module in strangers(file, named(path.read_text(encoding="utf-8"))):
            through = door(file, module)
            if through is None:
                wrong.setdefault(file, set()).add(module)
            else:
                used.add(through)
    assert wrong == {}, "move what they share to tests/support"
    assert used == DOORS.keys(), "these doors lead nowhere any more"


@pytest.mark.parametrize(
    "text",
    [
        "from tests.unit.landing.test_land_job import job_in",
        "from tests.unit.landing import test_land_job",
        "import tests.unit.test_imports as house",
        "def f():\n    from tests.integration.clusters import pair",
        "RUN = 'from tests.unit.test_imports import room'",
    ],
)
def test_the_check_sees_a_stranger(text: str) -> None:
    assert strangers("unit/landing/test_sinks.py", named(text))


@pytest.mark.parametrize(
    "text",
    [
        "from tests.support.landing import job_in",
        "from tests import matrix",
        "from mirrorlake.landing.job import LandJob",
        '"""As `tests.unit.test_imports` says."""',
    ],
)
def test_the_check_lets_others_pass(text: str) -> None:
    assert not strangers("unit/landing/test_sinks.py", named(text))
