"""Names of the package that tests use by its modules are there: of what takes minutes to run, a
name that moved is seen in a second."""

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from tests.support.syntax import syntax_of

TESTS = Path(__file__).parents[1]


def modules_of(tree: ast.Module) -> dict[str, ModuleType]:
    """Modules of the package that a file imports, by the names that it gives them."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mirrorlake"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                package = importlib.import_module(str(node.module))
                if hasattr(package, "__path__") and importlib.util.find_spec(full) is not None:
                    modules[alias.asname or alias.name] = importlib.import_module(full)
    return modules


def used(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name, attribute) for what is asked of a bare name, or replaced in it by a test."""
    for node in ast.walk(tree):
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
    tree = syntax_of(file.read_text(encoding="utf-8"))
    modules = modules_of(tree)
    shadowed = {
        node.arg if isinstance(node, ast.arg) else node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    }
    return [
        f"{modules[name].__name__}.{attribute}"
        for name, attribute in used(tree)
        if name in modules.keys() - shadowed and not hasattr(modules[name], attribute)
    ]


def test_a_name_that_a_test_uses_is_there() -> None:
    missing = {str(file.relative_to(TESTS)): missing_in(file) for file in TESTS.rglob("*.py")}
    assert {file: names for file, names in missing.items() if names} == {}
