"""What tests replace by its name is there: a slow test that names what was renamed long ago shows
it here."""

import ast
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

import pytest

from tests.support.syntax import syntax_of

TESTS = Path(__file__).parents[1]


def replaced() -> Iterator[tuple[str, str]]:
    """The dotted names that tests hand to `setattr` of a MonkeyPatch, and where."""
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(syntax_of(text)) if ".setattr(" in text else ():
            if (
                not isinstance(node, ast.Call)
                or not isinstance(node.func, ast.Attribute)
                or not node.args
            ):
                continue
            name = node.args[0]
            if (
                node.func.attr == "setattr"
                and isinstance(name, ast.Constant)
                and str(name.value)[:11] == "mirrorlake."
            ):
                yield str(name.value), f"{path.relative_to(TESTS)}:{node.lineno}"


@pytest.mark.parametrize(("name", "where"), list(replaced()))
def test_what_is_replaced_is_there(name: str, where: str) -> None:
    module, *attributes = name.split(".")
    while attributes and (found := _module(f"{module}.{attributes[0]}")):
        module, attributes = found, attributes[1:]
    assert resolve_name(f"{module}:{'.'.join(attributes)}") is not None, where


def _module(name: str) -> str | None:
    """The name, where it is a module's."""
    try:
        resolve_name(f"{name}:")
    except (ImportError, ValueError):
        return None
    return name
