"""One word, one meaning: a public class, or a name of a type, is one thing in the whole package."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.syntax import syntax_of

ROOT = Path(__file__).parents[2] / "src" / "mirrorlake"
#: What stands on the house has words of its own: Databricks' for the dashboard, MirrorMaker's for
#: its files.
OUTBUILDINGS = ("dashboard", "devtools", "metrics", "migrate", "mm2/importer", "notebook")
OUTBUILDINGS += ("tracking",)
#: Names of two things, and why.
TWICE = {
    "Lake": "what the topology file says of the lake, and the lake",
    "Pace": "the same of landing and of producing: how much one batch, or transaction, may hold",
    "Progress": "a run's, as the library gives it, and a task's of one partition",
    "Shipment": "the port, and the native one",
}


def types_of(tree: ast.Module) -> set[str]:
    """The public classes of a module, and its names of types, as `Ranges = Mapping[…]`."""
    names = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp):
            names |= {
                target.id
                for target in node.targets
                if isinstance(target, ast.Name) and not target.id.isupper()
            }
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("class Held: ...", {"Held"}),
        ("Ends = Mapping[str, int]", {"Ends"}),
        ("Value = str | int", {"Value"}),
        ("class _Own: ...\nFIRST = ENDS[0]\nends = FIRST | LAST", {"ends"}),
        ("def f():\n    class Inner: ...", set()),
    ],
)
def test_the_check_sees_names_of_types(text: str, names: set[str]) -> None:
    assert types_of(syntax_of(text)) == names


def test_each_name_of_a_type_is_one_thing() -> None:
    where = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        file = str(path.relative_to(ROOT))
        if not file.startswith(OUTBUILDINGS):
            for name in types_of(syntax_of(path.read_text(encoding="utf-8"))):
                where[name].append(file)
    twice = {name: files for name, files in where.items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in TWICE} == {}, (
        "call one of them after what it is"
    )
    assert TWICE.keys() <= twice.keys(), "these are one thing by now"
