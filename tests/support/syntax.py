"""Syntax trees, for tests that read code."""

import ast
import gc


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
