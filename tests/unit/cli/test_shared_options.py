"""The options that all commands share may stand behind the command, too."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.cli.overview import shared_first


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        (["plan", "-c", "a.yml"], ["-c", "a.yml", "plan"]),
        (["-c", "a.yml", "plan"], ["-c", "a.yml", "plan"]),
        (["plan", "--json", "-v", "--config=a.yml"], ["-v", "--config=a.yml", "plan", "--json"]),
        (["groups", "--config", "a.yml", "f"], ["--config", "a.yml", "groups", "f"]),
        (["sql", "--", "-c", "x"], ["sql", "--", "-c", "x"]),
        (["plan", "-c"], ["plan", "-c"]),
        ([], []),
    ],
)
def test_which_words_are_taken(words: Sequence[str], taken: Sequence[str]) -> None:
    assert shared_first(words) == taken


def test_a_command_reads_the_file_that_is_named_behind_it(tmp_path: Path) -> None:
    file = str(tmp_path / "none.yml")
    before, behind = (
        CliRunner().invoke(app, words) for words in (["-c", file, "plan"], ["plan", "-c", file])
    )
    assert "none.yml" in str(behind.exception)
    assert (type(behind.exception), str(behind.exception)) == (
        type(before.exception),
        str(before.exception),
    )


def test_one_that_lacks_its_file_is_told_so() -> None:
    ended = CliRunner().invoke(app, ["status", "-c"])
    assert ended.exit_code == 2
    assert "Option '-c' requires an argument, the topology file." in ended.output


@pytest.mark.parametrize("command", ["plan", "run", "status"])
def test_no_command_has_an_option_of_these_names(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"]).output
    assert not {"-c,", "-v,", "--config", "--verbose"}.intersection(shown.split())
