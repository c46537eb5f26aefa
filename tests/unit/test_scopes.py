"""What goes through many functions together is one value: a `Deployment` is a lake with its
clusters, a `Route` a flow with both."""

import ast
from pathlib import Path

from tests.support.syntax import modules_with

ROOT = Path(__file__).parents[2] / "src" / "mirrorlake"
#: What a function calls a lake, or one that is only read.
LAKES = {"lake", "reader"}
#: Functions that take a lake and the clusters side by side. May only sink.
APART = 9


def names(function: ast.FunctionDef) -> set[str]:
    given = function.args
    return {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def test_few_functions_take_a_lake_and_its_clusters_apart() -> None:
    apart = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path, tree in modules_with(ROOT, "connections")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and "connections" in names(node)
        and names(node) & LAKES
    ]
    assert len(apart) <= APART, apart
