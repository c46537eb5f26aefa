"""How much a call may leave to the order of its arguments: what a reader cannot count, has a
name."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.syntax import syntax_of

ROOT = Path(__file__).parents[2] / "src" / "mirrorlake"
MODULES = sorted(ROOT.rglob("*.py"))
#: So many arguments without a name are too many.
TOO_MANY = 6
#: What takes any number of things of one kind, as the columns of a table or of a frame.
ANY_NUMBER = {
    "select",
    "groupBy",
    "plain_table",
    "print_table",
    "add_row",
    "_cells",
    "warning",
    "CFUNCTYPE",
}
#: Functions that still take so many by position: Typer gives a command's by name. May only sink.
KNOWN = 10


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def is_compiled(call: ast.Call) -> bool:
    """Whether a function of C is called, whose arguments have no names: one of a `lib`."""
    function = call.func
    return isinstance(function, ast.Attribute) and ast.unparse(function.value).endswith("lib")


def places(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many arguments a function takes by position, without the object that it belongs to."""
    names = [argument.arg for argument in function.args.posonlyargs + function.args.args]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(argument.arg == "context" for argument in function.args.args[:1])


def test_few_arguments_are_left_to_their_order() -> None:
    made, taken = list[str](), list[str]()
    for path in MODULES:
        tree, name = syntax_of(path.read_text(encoding="utf-8")), str(path.relative_to(ROOT))
        made += [
            f"{name}:{call.lineno} {called(call)}"
            for call in calls(tree)
            if len(call.args) >= TOO_MANY
            and called(call) not in ANY_NUMBER
            and not is_compiled(call)
        ]
        taken += [
            f"{name}:{node.lineno} {node.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and places(node) >= TOO_MANY
            and not is_command(node)
        ]
    assert made == [], "calls"
    assert len(taken) <= KNOWN, taken
