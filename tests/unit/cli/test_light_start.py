"""`--help` imports what parses a command line and nothing of what commands do: it answers in a
moment."""

import re
import subprocess
import sys

import pytest
import typer

from mirrorlake.cli.main import app

HEAVY = (
    "alembic",
    "altair",
    "confluent_kafka",
    "deltalake",
    "duckdb",
    "mlflow",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "pyspark",
    "rich",
    "sqlalchemy",
    "sqlglot",
    "vl_convert",
    "yaml",
)
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
SCRIPT = f"""
import sys
from mirrorlake.cli.main import app
for words in {[[], *([name] for name in COMMANDS)]}:
    try:
        app([*words, "--help"], prog_name="mirrorlake")
    except SystemExit as end:
        assert not end.code, words
    # Typer itself takes pydantic to read an option, as those in front of a command are.
    found = sorted(({set(HEAVY)} - ({{"pydantic"}} if words else set())) & sys.modules.keys())
    assert not found, (words, found)
"""


def test_help_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: mirrorlake") == len(COMMANDS) + 1


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_says_what_it_does(name: str) -> None:
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    assert command.get_short_help_str()


def test_the_overview_shows_each_command_whole_at_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        app(["--help"], prog_name="mirrorlake")
    lines = capsys.readouterr().out.splitlines()[1:]  # behind the usage
    assert not [line for line in lines if "…" in line or line.endswith("...") or len(line) > 80]
    groups = [line for line in lines if re.fullmatch(r"\w+:", line)]
    assert groups == ["Options:", "Start:", "Look:", "Act:", "Prove:", "Develop:"]
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        shown = [line.split(maxsplit=1)[1] for line in lines if line.startswith(f"  {name} ")]
        assert shown == ([] if command.hidden else [command.short_help]), name
        assert command.hidden or command.short_help.endswith(".")
