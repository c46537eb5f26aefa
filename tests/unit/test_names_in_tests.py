"""Names of the package that tests use by its modules are there: of what takes minutes to run, a
name that moved is seen in a second."""

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from tests.support.syntax import syntax_of

TESTS = Path(__file__).parents[1]


@cache
def module_of(package: str, name: str) -> ModuleType | None:
    """A module of a package; None where the name is of something else."""
    full = f"{package}.{name}"
    if not hasattr(importlib.import_module(package), "__path__"):
        return None
    return importlib.import_module(full) if importlib.util.find_spec(full) is not None else None


def modules_of(nodes: list[ast.AST]) -> dict[str, ModuleType]:
    """Modules of the package that a file imports, by the names that it gives them."""
    return {
        alias.asname or alias.name: module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mirrorlake")
        for alias in node.names
        if (module := module_of(str(node.module), alias.name)) is not None
    }


def used(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """(name, attribute) for what is asked of a bare name, or replaced in it by a test."""
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                yield name, attribute
            case ast.Call(
                func=ast.Attribute(attr="setattr" | "delattr"),
                args=[ast.Name(id=name), ast.Constant(value=str(attribute)), *_],
            ):
                yield name, attribute


def missing_in(file: Path) -> list[str]:
    """Names that a file uses by a module of the package, which has none of them."""
    nodes = list(ast.walk(syntax_of(file.read_text(encoding="utf-8"))))
    modules = modules_of(nodes)
    if not modules:
        return []
    shadowed = {
        node.arg if isinstance(node, ast.arg) else node.id
        for node in nodes
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    }
    return [
        f"{modules[name].__name__}.{attribute}"
        for name, attribute in used(nodes)
        if name in modules.keys() - shadowed and not hasattr(modules[name], attribute)
    ]


def test_a_name_that_a_test_uses_is_there() -> None:
    missing = {str(file.relative_to(TESTS)): missing_in(file) for file in TESTS.rglob("*.py")}
    assert {file: names for file, names in missing.items() if names} == {}
