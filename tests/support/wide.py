"""What `make test` leaves to CI, and why, as test modules say it; read from their text.

    @pytest.mark.wide("test_killed_again")                      # a test of the same file
    @pytest.mark.wide("lake/test_upkeep.py::test_small")        # one of another file
    @pytest.mark.wide(because="a broker's timeout has to pass")

Such a test proves more of what the named one proves, which `make test` has, or says why none does:
`tests/unit/test_wide.py` looks. A parameter of a test may have the mark too.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support.syntax import syntax_of

TESTS = Path(__file__).parents[1]
#: The marks of what `make test` does not run.
LEFT_OUT = frozenset({"slow", "quiet", "wide"})


class Wide(NamedTuple):
    """A mark: where it is, which tests it names, by file and name, and its reason for naming
    none."""

    file: str
    line: int
    named: tuple[str, ...]
    because: str


class Module(NamedTuple):
    """A file of tests: what leaves each of its tests out of `make test` as a whole, by test, and
    its marks."""

    left_out: Mapping[str, frozenset[str]]
    wide: tuple[Wide, ...]

    @property
    def tests(self) -> list[str]:
        """The tests that `make test` runs, with some parameters or all."""
        return [name for name, marks in self.left_out.items() if not marks]


@cache
def module_of(file: str) -> Module:
    """A file of tests by its path below tests/. Raises OSError where there is none."""
    return parsed(file, (TESTS / file).read_text(encoding="utf-8"))


def parsed(file: str, text: str) -> Module:
    """The same of a text. Pure."""
    tree = syntax_of(text)
    assigned = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    all_of_it = _marks(assigned.get("pytestmark"), assigned)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    left_out = {
        function.name: all_of_it.union(*(_marks(of, assigned) for of in function.decorator_list))
        for function in functions
        if function.name.startswith("test_")
    }
    return Module(left_out, tuple(sorted(_wide(file, tree), key=lambda mark: mark.line)))


def marks() -> Iterator[Wide]:
    """All marks of all files; the many without one are not parsed."""
    for path in sorted(TESTS.rglob("test_*.py")):
        if "mark.wide" in path.read_text(encoding="utf-8"):
            yield from module_of(path.relative_to(TESTS).as_posix()).wide


def files(folder: str) -> list[str]:
    """The files of tests in a folder below tests/, by their paths below tests/."""
    return sorted(
        path.relative_to(TESTS).as_posix() for path in (TESTS / folder).rglob("test_*.py")
    )


def runs(name: str) -> bool:
    """Whether `make test` runs a test, given as `integration/test_crash.py::test_stage_first`."""
    file, _, test = name.partition("::")
    return (TESTS / file).is_file() and test in module_of(file).tests


def _marks(node: ast.expr | None, assigned: Mapping[str, ast.expr]) -> frozenset[str]:
    """Those of LEFT_OUT that a decorator, or `pytestmark`, is; not those of single parameters."""
    match node:
        case ast.Call(func=of):
            return _marks(of, assigned)
        case ast.Attribute(value=ast.Attribute(attr="mark"), attr=name):
            return LEFT_OUT & {name}
        case ast.Name(id=name) if name in assigned:
            return _marks(assigned[name], assigned)
        case ast.List(elts=of) | ast.Tuple(elts=of):
            return frozenset().union(*(_marks(each, assigned) for each in of))
    return frozenset()


def _wide(file: str, tree: ast.Module) -> Iterator[Wide]:
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Attribute(attr="mark"), attr="wide"):
                call = called.get(id(node))
                given = [] if call is None else [ast.literal_eval(each) for each in call.args]
                words = {} if call is None else {of.arg: of.value for of in call.keywords}
                because = ast.literal_eval(words["because"]) if "because" in words else ""
                named = tuple(name if "::" in name else f"{file}::{name}" for name in given)
                yield Wide(file, node.lineno, named, because)
