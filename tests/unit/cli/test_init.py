"""`mirrorlake init` at a terminal and without one."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirrorlake.cli import init as module
from mirrorlake.cli.main import app
from mirrorlake.errors import InputError

BOTH = ["--source", "a:1", "--target", "b:1", "--untried"]


def run(directory: Path, *words: str, answers: str = "") -> str:
    config = ["-c", str(directory / "mirrorlake.yml")]
    done = CliRunner().invoke(app, [*config, "init", *words], input=answers, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_what_no_option_says_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_at_a_terminal", lambda: True)
    output = run(tmp_path, "--untried", answers="a:1\nb:1\n\n")
    assert "A broker to mirror from" in output and "run    # do it" in output
    text = (tmp_path / "mirrorlake.yml").read_text(encoding="utf-8")
    assert "bootstrap_servers: a:1" in text and "- .*" in text


def test_without_a_terminal_the_missing_option_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--topics is not given, and there is no terminal"):
        run(tmp_path, *BOTH)
    assert not (tmp_path / "mirrorlake.yml").exists()


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mirrorlake.yml").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"mirrorlake.yml exists; name another file with -o"):
        run(tmp_path, *BOTH, "--topics", ".*")
    assert (tmp_path / "mirrorlake.yml").read_text(encoding="utf-8") == "mine"
    other = tmp_path / "other.yml"
    assert f"-c {other} plan" in run(tmp_path, *BOTH, "--topics", "x", "-o", str(other))
