"""The notebooks are Databricks source files, begin alike, explain themselves, and hold no logic."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.syntax import syntax_of

FOLDER = Path(__file__).parents[3] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))
NAMES = [
    "01_quickstart",
    "02_investigate_latency",
    "03_translate_offsets",
    "04_failover_drill",
    "05_audit",
    "06_capacity",
    "07_trace",
    "08_command",
]
#: What a page does on Databricks before it imports anything of ours, each in a cell of its own.
INSTALLING = ["# MAGIC %pip install --quiet -r requirements.txt", "# MAGIC %restart_python"]
LOGIC = (
    ast.FunctionDef,
    ast.ClassDef,
    ast.For,
    ast.While,
    ast.ListComp,
    ast.DictComp,
    ast.Lambda,
    ast.Try,
    ast.With,
)


def cells(path: Path) -> list[str]:
    """The cells, as Databricks cuts them."""
    text = path.read_text(encoding="utf-8")
    return [cell.strip() for cell in re.split(r"^# COMMAND ----------$", text, flags=re.MULTILINE)]


def test_all_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == NAMES


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_format(path: Path) -> None:
    assert path.read_text(encoding="utf-8").splitlines()[0] == "# Databricks notebook source"
    first, *others = cells(path)
    assert (
        first.removeprefix("# Databricks notebook source")
        .strip()
        .startswith("# MAGIC %md\n# MAGIC # ")
    )
    assert sum("# MAGIC %md" in cell for cell in [first, *others]) >= 5, "prose around every query"
    for cell in others:
        assert cell
        lines = cell.splitlines()
        if cell in INSTALLING:
            continue
        if cell.startswith("# MAGIC"):
            assert lines[0] == "# MAGIC %md" and all(line.startswith("# MAGIC") for line in lines)
        else:
            assert "# MAGIC" not in cell, "a cell is prose or code"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_wheel_is_installed_before_it_is_imported(path: Path) -> None:
    """A page that runs as a plain file knows nothing of it: to Python these cells are comments."""
    code = [cell for cell in cells(path) if "# MAGIC %md" not in cell]
    assert code[:2] == INSTALLING
    assert "mirrorlake" in code[2] and not [cell for cell in code[2:] if cell.startswith("# MAGIC")]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_all_logic_is_in_the_package(path: Path) -> None:
    tree = syntax_of(path.read_text(encoding="utf-8"))
    assert [node for node in ast.walk(tree) if isinstance(node, LOGIC)] == []
    strings = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert not [text for text in strings if re.search(r"\bselect\b", text, re.IGNORECASE)], (
        "SQL lives in .sql files"
    )
