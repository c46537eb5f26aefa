"""The files of `notebooks/` as notebooks of Jupyter: `make notebooks`, or

    python -m mirrorlake.notebook.jupyter FOLDER FILES… [NAME=VALUE…]

which writes them into a folder, with values of widgets, such as lake=/data/lake, in each notebook
that has the widget. A kernel runs in its notebook's folder, so a relative lake is below that.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mirrorlake.errors import InputError

_FIRST, _BETWEEN = "# Databricks notebook source\n", "\n# COMMAND ----------\n"
_MAGIC = "# MAGIC"
#: Beginnings of cells that only a workspace needs, which install the wheel.
_OF_A_WORKSPACE = ("%md\n## Installing", "%pip ", "%restart_python")
_OPENED = re.compile(r"(open_notebook\(\s*globals\(\))([^)]*)\)")
_WIDGET = re.compile(r"(\w+)=(\"[^\"]*\")")


def notebook_of(source: str, widgets: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Convert a file of ours into a Jupyter notebook (nbformat 4), with values of widgets. Raises
    InputError for a widget that it does not have. Pure."""
    cells = []
    for number, text in enumerate(source.removeprefix(_FIRST).split(_BETWEEN)):
        text = _unmarked(text.strip("\n"))
        if text.startswith(_OF_A_WORKSPACE):
            continue
        kind = "markdown" if text.startswith("%md\n") else "code"
        lines = with_widgets(text.removeprefix("%md\n"), widgets or {}).splitlines(keepends=True)
        shown: dict[str, Any] = {"outputs": [], "execution_count": None}
        name = {"id": f"cell-{number}", "metadata": {}}
        cells.append(
            {"cell_type": kind, **name, "source": lines, **(shown if kind == "code" else {})}
        )
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": cells}


def _unmarked(text: str) -> str:
    """A cell without the marks that make it a comment in a Python file."""
    lines = text.splitlines()
    if not lines or not all(line.startswith(_MAGIC) for line in lines):
        return text
    return "\n".join(line.removeprefix(_MAGIC).removeprefix(" ") for line in lines)


def with_widgets(text: str, widgets: Mapping[str, str]) -> str:
    """Change the values that a cell passes to `open_notebook`, if any. Raises InputError."""
    opened = _OPENED.search(text)
    if opened is None or not widgets:
        return text
    known = widgets_of(text)
    if unknown := sorted(widgets.keys() - set(known)):
        raise InputError(f"the notebook has no widget {unknown[0]}, but {', '.join(known)}")
    there = dict(_WIDGET.findall(opened[2]))
    there |= {name: json.dumps(value) for name, value in widgets.items()}
    values = ", ".join(f"{name}={value}" for name, value in there.items())
    return f"{text[: opened.start()]}{opened[1]}, {values}){text[opened.end() :]}"


def write(folder: Path, sources: Sequence[Path], widgets: Mapping[str, str]) -> list[Path]:
    """Write notebooks into a folder, each with the values of its own widgets. Raises InputError for
    a widget that none of them has, and OSError."""
    texts = {source: source.read_text(encoding="utf-8") for source in sources}
    known = {source: widgets_of(text) for source, text in texts.items()}
    everywhere = list(dict.fromkeys(name for names in known.values() for name in names))
    if unknown := sorted(widgets.keys() - set(everywhere)):
        raise InputError(f"no notebook has a widget {unknown[0]}; known: {', '.join(everywhere)}")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for source, text in texts.items():
        given = {name: value for name, value in widgets.items() if name in known[source]}
        path = folder / f"{source.stem}.ipynb"
        path.write_text(json.dumps(notebook_of(text, given), indent=1) + "\n", encoding="utf-8")
        written.append(path)
    return written


def widgets_of(source: str) -> list[str]:
    """The names of a notebook's widgets."""
    opened = _OPENED.search(source)
    return ["lake", *(name for name, _ in _WIDGET.findall(opened[2]))] if opened else ["lake"]


def main(words: Sequence[str]) -> int:
    """Write the notebooks named on the command line; return the exit code."""
    if len(words) < 2:
        sys.stderr.write(f"{__doc__}")
        return 2
    widgets = dict(word.split("=", 1) for word in words[1:] if "=" in word)
    sources = [Path(word) for word in words[1:] if "=" not in word]
    try:
        written = write(Path(words[0]), sources, widgets)
    except (InputError, OSError) as error:
        sys.stderr.write(f"mirrorlake: {error}\n")
        return 2
    sys.stdout.write("".join(f"{path}\n" for path in written))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
