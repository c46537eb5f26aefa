"""Syntax trees, for tests that read code."""

import ast
import gc
from collections.abc import Iterator
from pathlib import Path


def syntax_of(text: str) -> ast.Module:
    """As `ast.parse`. Garbage is not collected meanwhile: what is freed may let another thread
    parse, and CPython 3.11 then counts the depth of both as one, and raises SystemError
    (https://github.com/python/cpython/issues/106905)."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if collects:
            gc.enable()


def modules_with(folder: Path, *words: str) -> Iterator[tuple[Path, ast.Module]]:
    """The modules below a folder whose text holds one of some words: the others are not parsed."""
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(word in text for word in words):
            yield path, syntax_of(text)
