"""docs/failover.md: its commands exist, with the options that it gives them."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from mirrorlake.cli.main import app

PAGE = (Path(__file__).parents[3] / "docs" / "failover.md").read_text(encoding="utf-8")
COMMANDS = [
    line.strip()
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.strip().startswith("mirrorlake ")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_can_be_called(line: str) -> None:
    name, *arguments = shlex.split(line)[1:]
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    assert command.make_context(name, arguments).params


def test_the_page_tells_of_each_command() -> None:
    assert {line.split()[1] for line in COMMANDS} >= {
        "groups",
        "failover",
        "failback",
        "divergence",
        "sql",
    }
