"""Where no flow of the file is enabled, what would do nothing says so, and is no success."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import mirrorlake
from mirrorlake.cli.main import CommandEnded, main
from mirrorlake.errors import TopologyError
from mirrorlake.library.internals import Internals
from mirrorlake.library.lake import OpenLake


class Began(Exception):
    """The run came to where Spark starts."""


def file_with(directory: Path, *settings: str) -> Path:
    """A file of flows with these settings."""
    file = directory / "mirrorlake.yml"
    flows = zip(("east->west", "west->east"), settings, strict=True)
    file.write_text(
        "clusters:\n  east: {bootstrap_servers: '127.0.0.1:1'}\n"
        "  west: {bootstrap_servers: '127.0.0.1:2'}\nlake: {path: ./lake}\nflows:\n"
        + "".join(f"  {name}: {{{setting}}}\n" for name, setting in flows)
    )
    return file


DISABLED = ("enabled: false", "enabled: false")


@pytest.mark.parametrize(
    "command", ["run --once", "run --once --json", "plan", "verify", "verify --watch", "groups"]
)
def test_a_command_that_would_do_nothing_ends_with_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    file = file_with(tmp_path, *DISABLED)
    with pytest.raises(CommandEnded) as ended:
        main(["-c", str(file), *command.split()])
    assert ended.value.code == 2, "wrong input, as a disabled flow by its name"
    out, err = capsys.readouterr()
    assert out == "" and err.count("no flow of the topology file is enabled") == 1
    assert not (tmp_path / "lake").exists()


Ask = Callable[[OpenLake], object]


@pytest.mark.parametrize("ask", [lambda lake: lake.run(once=True), lambda lake: lake.verify()])
def test_a_library_raises(tmp_path: Path, ask: Ask) -> None:
    with pytest.raises(TopologyError, match="flows.east->west.enabled: true"):
        ask(mirrorlake.open(file_with(tmp_path, *DISABLED)))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (DISABLED, ["no flow of the topology file is enabled"]),
        (("paused: true", "enabled: false"), ["flow east->west is paused as a whole"]),
        (("", "enabled: false"), []),
    ],
)
def test_a_run_without_an_end_says_so_and_waits_for_an_edit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    settings: tuple[str, str],
    told: list[str],
) -> None:
    def begin(_known: Internals) -> None:
        raise Began

    monkeypatch.setattr(Internals, "later_session", begin)
    with caplog.at_level(logging.WARNING), pytest.raises(Began):
        mirrorlake.open(file_with(tmp_path, *settings)).run()
    assert len(caplog.messages) == len(told)
    assert all(part in line for part, line in zip(told, caplog.messages, strict=True))
