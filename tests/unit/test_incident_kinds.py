"""docs/incidents.md lists every kind of incident that the code can write, and each choice that it
offers.

The kinds are read from the sources: those of `errors.py`, and what `Incidents.open`, `open_all` and
`Incident` are given.
A call whose kind cannot be followed from here fails the test, rather than being left out.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

from mirrorlake import errors
from mirrorlake.errors import MirrorlakeError
from mirrorlake.landing.source_comparison import LossKind
from mirrorlake.run.attention import no_decision
from mirrorlake.run.choices import CHOICES
from mirrorlake.run.control_incidents import kind_of
from mirrorlake.run.control_loop import TURN
from tests.support.syntax import syntax_of

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "mirrorlake").rglob("*.py"))
PAGE = (ROOT / "docs" / "incidents.md").read_text(encoding="utf-8")
#: Names of variables that hold a kind which somebody else chose, and who chose it.
HANDED_ON = {"loss.kind": set(get_args(LossKind)), "kind": set[str]()}


@cache
def parsed(path: Path) -> ast.Module:
    return syntax_of(path.read_text(encoding="utf-8"))


def rows() -> dict[str, str]:
    """The rows of the page's table, by kind."""
    found = {}
    for line in PAGE.splitlines():
        if line.startswith("| `"):
            first, rest = line[1:].split("|", 1)
            for kind in re.findall(r"`(\w+)`", first):
                assert kind not in found, kind
                found[kind] = rest
    return found


def raised() -> set[str]:
    """What a flow stops for, by the class of the error."""
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, MirrorlakeError)
    ]
    return {kind.incident_kind for kind in kinds}


def control() -> set[str]:
    """What tasks of control are called in their incidents."""
    tree = parsed(ROOT / "src/mirrorlake/run/control_loop.py")
    constants = dict(constants_of(tree))
    # by the helper that adds one, or alone
    made = [call.args[0] for call in calls(tree) if named(call.func) in ("add", "ControlTask")]
    names = [name for name in made if ast.unparse(name) != "name"]
    found = {kind_of(text) for name in names for text in strings(name, constants, tree)}
    return found | {kind_of(TURN)}  # all of them together


def constants_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Texts that a module gives names to at its top."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = (
                    zip(target.elts, node.value.elts, strict=True)
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                    else [(target, node.value)]
                )
                for name, value in pairs:
                    if (
                        isinstance(name, ast.Name)
                        and isinstance(value, ast.Constant)
                        and isinstance(value.value, str)
                    ):
                        yield name.id, value.value


def calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def named(node: ast.expr) -> str:
    return (
        node.attr
        if isinstance(node, ast.Attribute)
        else node.id
        if isinstance(node, ast.Name)
        else ""
    )


def strings(node: ast.expr, constants: dict[str, str], tree: ast.AST) -> set[str]:
    """The texts that an expression may be; AssertionError where that cannot be seen."""
    text = ast.unparse(node)
    if isinstance(node, ast.Constant):
        return {str(node.value)}
    if isinstance(node, ast.IfExp):
        return strings(node.body, constants, tree) | strings(node.orelse, constants, tree)
    if isinstance(node, ast.Name) and node.id in constants:
        return {constants[node.id]}
    if text.endswith("incident_kind"):
        return raised()
    if text.startswith("kind_of("):
        return control()
    given = [
        item.value
        for item in ast.walk(tree)
        if isinstance(item, ast.Assign)
        and any(ast.unparse(target) == text for target in item.targets)
    ]
    if given:
        return set().union(*(strings(item, constants, tree) for item in given))
    assert text in HANDED_ON, f"which kinds of incident {text} may be is not seen here"
    return HANDED_ON[text]


@cache
def written() -> frozenset[str]:
    """Every kind that the code can write."""
    everywhere = dict(
        pair for path in SOURCES for pair in constants_of(parsed(path)) if pair[0].isupper()
    )
    found = control()
    for path in SOURCES:
        constants = everywhere | dict(constants_of(parsed(path)))
        for function in (
            node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)
        ):
            for call in calls(function):
                if named(call.func) not in ("Incident", "open", "open_all"):
                    continue
                asked = ast.unparse(call.func)
                if asked == "Incident" or re.search(
                    r"[iI]ncidents(\(.*\))?\.(open|open_all)$", asked
                ):
                    found |= strings(call.args[1], constants, function)
    return frozenset(found)


def test_every_kind_of_incident_is_on_its_page() -> None:
    assert written() > {
        "topic_refused",
        "landing_failed",
        "cluster_unreachable",
        "control_samples",
        "acls_left",
    }
    assert set(rows()) == written()


def test_every_choice_is_on_the_page_too() -> None:
    for kind, choices in CHOICES.items():
        assert [choice for choice in choices if f"`{choice}`" not in rows()[kind]] == [], kind


def test_what_the_page_says_to_close_by_itself_offers_no_decision() -> None:
    """And what it does not is decided, or acknowledged."""
    by_itself = {
        kind
        for kind, row in rows().items()
        if re.search(r"(?<!never )closes by itself|start again", row, re.IGNORECASE)
    }
    undecided = {kind for kind in written() if no_decision(kind) is not None}
    assert not undecided & CHOICES.keys()
    assert undecided == by_itself - CHOICES.keys() - {"map_contradiction"}, "which is acknowledged"


def test_the_short_list_of_operate_names_kinds_that_there_are() -> None:
    text = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    table = text.partition("| kind | at three in the morning |")[2].partition("\n\n")[0]
    named_there = set(
        re.findall(
            r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if "|" in line)
        )
    )
    assert named_there and named_there <= written()
