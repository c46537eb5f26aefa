"""Calls of the library that pages, docstrings and notebooks show can be made, and their answers
have the attributes that are read of them."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import mirrorlake
from tests.support.syntax import syntax_of

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    [
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "notebooks").glob("*.py"),
        ROOT / "src" / "mirrorlake" / "__init__.py",
        *(ROOT / "src" / "mirrorlake" / "library").glob("*.py"),
    ]
)
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
INDENTED = re.compile(r"^ {4,}(?:\w+ = )?((?:lake|flow|mirrorlake)\.\w.*)$", re.MULTILINE)


def shown(page: Path) -> Iterator[ast.AST]:
    """The expressions and programs that a page shows."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py" and page.parent.name != "notebooks":
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        nodes = [node for node in ast.walk(syntax_of(text)) if isinstance(node, kinds)]
        text = "\n".join(ast.get_docstring(node, clean=False) or "" for node in nodes)
    texts = [text] if page.parent.name == "notebooks" else BLOCK.findall(text)
    texts += INLINE.findall(text) + INDENTED.findall(text)
    for code in texts:
        try:
            yield syntax_of(textwrap.dedent(re.sub(r"#.*", "", code).replace("…", "...")))
        except SyntaxError:
            continue  # a shell's, SQL, or words


def called(node: ast.expr) -> tuple[object, bool] | None:
    """The function of the library that is called, and whether it is a method; None for others'."""
    if not isinstance(node, ast.Attribute):
        return None
    owner = node.value
    name = getattr(owner, "id", getattr(owner, "attr", None))
    if name == "mirrorlake" and node.attr == "open":
        return mirrorlake.open, False
    if name == "lake":
        return getattr(mirrorlake.OpenLake, node.attr), True
    of_flows = isinstance(owner, ast.Subscript) and getattr(owner.value, "attr", "") == "flows"
    return (getattr(mirrorlake.OpenFlow, node.attr), True) if name == "flow" or of_flows else None


def wrong(tree: ast.AST) -> Iterator[str]:
    """What cannot be called, or read of an answer."""
    for node in ast.walk(tree):
        try:
            if isinstance(node, ast.Call) and (found := called(node.func)):
                function, bound = found
                given = [ast.dump(arg) for arg in node.args]
                named = {word.arg: "" for word in node.keywords if word.arg}
                inspect.signature(function).bind(*[""] * bound, *given, **named)  # type: ignore[arg-type]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
                found = called(node.value.func)
                answer = inspect.signature(found[0]).return_annotation if found else None  # type: ignore[arg-type]
                kind = getattr(answer, "__name__", str(answer)).strip("'")
                known = getattr(mirrorlake, kind) if kind in mirrorlake.__all__ else None
                if known is not None and not hasattr(known, node.attr):
                    known.__dataclass_fields__[node.attr]
        except (AttributeError, KeyError, TypeError) as error:
            yield f"{ast.unparse(node)}: {error!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_it_can_be_called(page: Path) -> None:
    assert [why for tree in shown(page) for why in wrong(tree)] == []


@pytest.mark.parametrize(
    "code",
    [
        "lake.statuss()",
        "lake.translate('a->b', 'orders', 0)",
        "lake.run(onse=True)",
        "lake.status().helthy",
        "lake.flows['a->b'].lags()",
        "nb.lake.flows['a->b'].trace('orders', 0, 1, kee='x')",
        "mirrorlake.open('mirrorlake.yml', readonly=True)",
    ],
)
def test_what_cannot_be_called_is_seen(code: str) -> None:
    assert len(list(wrong(syntax_of(code)))) == 1


def test_there_are_many() -> None:
    calls = [
        node
        for page in PAGES
        for tree in shown(page)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node.func)
    ]
    assert len(calls) > 60
