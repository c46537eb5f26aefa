"""What reads the output of a command may end before it, as `head` does: that is no sign that
something is wrong, and nothing is told of it."""

import os
import subprocess
import sys

import pytest

#: Commands that print by click, and by Rich; that leave something in a buffer; that fail; and one
#: whose pipe to something else is broken.
COMMANDS = """
import sys, typer
from mirrorlake.cli.main import app, main
from mirrorlake.terminal import plain_console

@app.command()
def plainly():
    typer.echo("x")

@app.command()
def richly():
    plain_console().print("x")

@app.command()
def buffered():
    sys.stdout.write("x")

@app.command()
def failing():
    sys.stdout.write("x")
    raise typer.Exit(1)

@app.command()
def elsewhere():
    raise BrokenPipeError(32, "the other process is gone")

main()
"""


def ran(*words: str, errors_too: bool = False, read: bool = False) -> tuple[int, str]:
    """The exit code of a command, and what it said on stderr. What reads its output has ended,
    unless it is `read`."""
    reads, writes = os.pipe()
    if not read:
        os.close(reads)
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, *words],
        stdout=writes,
        stderr=writes if errors_too else subprocess.PIPE,
        text=True,
        check=False,
        env={name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )
    os.close(writes)
    if read:
        os.close(reads)
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize("name", ["version", "--help", "plainly", "richly", "buffered"])
def test_a_command_ends_quietly(name: str) -> None:
    assert ran(name) == (141, "")


def test_what_a_command_has_to_say_by_its_exit_code_is_said() -> None:
    assert ran("failing") == (1, "")


@pytest.mark.parametrize("words", [("nothing",), ("version", "--nothing")])
def test_where_errors_go_to_the_same_pipe(words: tuple[str, ...]) -> None:
    assert ran(*words, errors_too=True)[0] == 141


def test_another_pipe_that_breaks_is_told_of() -> None:
    """As that to a server: a command that ended so was quiet about it."""
    code, said = ran("elsewhere", read=True)
    assert code == 1 and "BrokenPipeError" in said and "the other process is gone" in said
