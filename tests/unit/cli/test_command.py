"""A command called as a job calls it: its name and its options are two texts, and its end is a
sentence."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.cli.context import Context
from mirrorlake.cli.main import CommandEnded, main
from mirrorlake.cli.overview import words_of
from mirrorlake.errors import InputError, ReplicationError
from tests.support.commands import forked

NOWHERE = "/no/such/mirrorlake.yml"


def called(*words: str) -> None:
    main(["-c", NOWHERE, "command", "--", *words])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plan", ["plan"]),
        (" plan  --flow east->west ", ["plan", "--flow", "east->west"]),
        (
            """sql "SELECT count(*) FROM incidents WHERE kind = 'x y'" """,
            ["sql", "SELECT count(*) FROM incidents WHERE kind = 'x y'"],
        ),
        (
            "verify --topic 'a b' --since=2026-11-21",
            ["verify", "--topic", "a b", "--since=2026-11-21"],
        ),
        ("translate --topic $HOME;ls", ["translate", "--topic", "$HOME;ls"]),
    ],
)
def test_words_are_those_of_a_shell_of_which_nothing_is_expanded(
    text: str, words: list[str]
) -> None:
    assert words_of(text) == words


@given(st.text())
def test_any_text_is_words_or_one_sentence(text: str) -> None:
    try:
        assert all(isinstance(word, str) for word in words_of(text))
    except InputError as error:
        assert error.exit_code == 2


def test_a_command_answers(capsys: pytest.CaptureFixture[str]) -> None:
    called("version", "")
    assert capsys.readouterr().out.strip() == "0.1.0"


def test_the_version_is_told_in_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--version"])
    main(["version"])
    assert capsys.readouterr().out.split() == ["0.1.0", "0.1.0"]


def test_options_reach_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[object, ...]] = []
    answers = SimpleNamespace(incidents=lambda *wanted, target_topic: seen.append(wanted) or [])
    monkeypatch.setattr(Context, "lake", answers)
    called("resolve", "--flow east->west --kind 'topic refused' --json")
    assert seen == [("east->west", None, None, "topic refused")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "--flow 'east"), "cannot be split into words (No closing quotation)"),
        (("pln", ""), "there is no command pln; known are bench, dashboard"),
        (("command", "plan"), "there is no command command"),
        (("", " "), "no command was given"),
        (("plan", ""), f"there is no topology file {NOWHERE}"),
    ],
)
def test_wrong_input_ends_with_a_sentence(
    words: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandEnded) as end:
        called(*words)
    assert end.value.code == 2
    assert said in str(end.value) and "exit code 2" in str(end.value), (
        "what a job's run shows of an exception"
    )
    assert said in capsys.readouterr().err


def test_an_unknown_option_is_refused_by_the_command_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(CommandEnded, match="exit code 2, it was not done") as end:
        called("plan", "--florw east->west")
    assert end.value.code == 2
    assert "No such option: --florw" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (typer.Exit(1), 1, "exit code 1, the replication needs attention"),
        (
            ReplicationError("orders-0 lost records"),
            1,
            "the replication needs attention.*orders-0 lost records",
        ),
    ],
)
def test_the_end_says_that_somebody_has_to_look(
    end: Exception, code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_args: object, **_more: object) -> None:
        raise end

    monkeypatch.setattr(Context, "lake", property(fails))
    with pytest.raises(CommandEnded, match=said) as ended:
        called("plan", "")
    assert ended.value.code == code


def test_a_process_ends_with_the_code_and_says_the_sentence_once() -> None:
    command = [sys.executable, "-m", "mirrorlake", "-c", NOWHERE, "command", "--", "plan", ""]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.count("there is no topology file") == 1 and "Traceback" not in done.stderr


def test_a_user_without_a_home_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one whom the system does not know, without HOME."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**30)
    with pytest.raises(RuntimeError):
        Path.home()
    called("version", "")
    assert Path.home().is_dir()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("local", "up", "--directory", "{file}/x"), "{file}/x cannot be read or written (Not a "),
        (("bench", "--out", "{file}/x/y.json"), "{file}/x cannot be read or written (Not a "),
        (("demo", "--directory", "{file}/x"), "{file}/x cannot be read or written (Not a "),
    ],
)
def test_a_place_that_cannot_be_written_is_one_sentence(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "a-file"
    file.touch()
    command = [word.format(file=file) for word in words]
    for added, pages in ((), 0), (("-v",), 1):  # -v says where it came from
        done = forked([*command, *added], tmp_path)
        assert (done.returncode, done.stderr.count("Traceback")) == (2, pages)
        assert done.stderr.splitlines()[-1].startswith("mirrorlake: " + said.format(file=file))


@pytest.mark.parametrize("sizes", ["0", "79", "1024,x", "", "-5"])
def test_sizes_that_no_record_has_are_refused_before_a_cluster_is_started(
    sizes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandEnded) as ended:
        main(["bench", "--record-bytes", sizes])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert not said.out and said.err.startswith(f"mirrorlake: --record-bytes {sizes} is not a list")


def test_where_no_cluster_was_started_a_sentence_says_what_starts_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandEnded) as ended:
        main(["local", "status", "--directory", str(tmp_path)])
    assert ended.value.code == 1 and "`mirrorlake local up` starts" in capsys.readouterr().err
