"""Each message that the tables of a page quote is one that the code can write."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.syntax import syntax_of

ROOT = Path(__file__).parents[2]
GAP = "…"
PAGES = ("troubleshooting", "failover", "migrate")


def quoted_by(page: str) -> list[str]:
    """The messages that the cells of a page's columns `message` begin with."""
    found, column = list[str](), None
    for line in (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if not cells or "message" in cells:
            column = cells.index("message") if cells else None
        elif column is not None and (message := re.match(r"`([^`]+)`", cells[column])):
            found.append(message[1])
    return found


QUOTED = [message for page in PAGES for message in quoted_by(page)]


def template(node: ast.expr) -> str | None:
    """A text of the code, with a gap for each value that it is filled with."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%[sd]|%\.\df", GAP, node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values
        )
    return None


@cache
def templates() -> tuple[str, ...]:
    nodes = [
        node
        for path in sorted((ROOT / "src" / "mirrorlake").rglob("*.py"))
        for node in ast.walk(syntax_of(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.expr)
    ]
    return tuple(text for node in nodes if (text := template(node)) and " " in text)


def says(quoted: str, text: str) -> bool:
    """Whether a text of the code, its gaps filled, may read as quoted. A gap of the quote stands
    for anything."""
    parts = [re.escape(part) for part in quoted.strip(GAP).split(GAP)]
    return re.search(".*?".join(parts), text, re.DOTALL) is not None


@pytest.mark.parametrize("quoted", QUOTED)
def test_the_code_says_it(quoted: str) -> None:
    words = max(quoted.split(GAP), key=len).split()
    assert len(words) >= 2, "too little to be found by"
    assert any(says(quoted, text) for text in templates()), quoted


def test_there_are_many_and_each_once() -> None:
    assert all(len(quoted_by(page)) > 6 for page in PAGES)
    assert len(QUOTED) > 40 and len(set(QUOTED)) == len(QUOTED)


def test_what_the_code_does_not_say_is_seen() -> None:
    assert not any(says("cluster … does not answer for … hours", text) for text in templates())
