"""Commands that the pages show exist, with the options that are shown."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from mirrorlake.cli.main import app

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "notebooks").glob("*.py")]
)
COMMAND = typer.main.get_command(app)
COMMANDS = COMMAND.commands  # type: ignore[attr-defined]
OPTIONS = {
    name
    for command in (COMMAND, *COMMANDS.values(), *COMMANDS["local"].commands.values())
    for option in command.params
    for name in (*option.opts, *option.secondary_opts)
}
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^(?:\$ )?(mirrorlake [^#\n]+?)(?:\s+#.*)?$", re.MULTILINE)
INLINE = re.compile(r"`(mirrorlake [^`\n]+)`")
#: Code that is a name: the dashboard's.
NAMES = {"mirrorlake replication"}
#: A command in the text without ours in front, as `run --once`, and an option alone.
SHORT = re.compile(r"`(?=([a-z-]+) --?\w)([^`\n]+)`")
ALONE = re.compile(r"`(--[\w.-]+)[^`\n]*`")
#: Options of other programs: of the tests, of `make chaos`, of `make bench`, of Databricks' CLI.
THEIRS = {"--help", "--kills", "--matrix", "--minutes", "--only", "--processes", "--var"}


def shown(path: Path) -> list[str]:
    """Commands in blocks of code and in the text."""
    text = path.read_text(encoding="utf-8")
    blocks = [line for block in BLOCK.findall(text) for line in LINE.findall(block)]
    text = BLOCK.sub("", text)
    short = [f"mirrorlake {code}" for name, code in SHORT.findall(text) if name in COMMANDS]
    return [line.strip() for line in (*blocks, *INLINE.findall(text), *short) if line not in NAMES]


def wrong(line: str) -> str | None:
    """What is wrong with a command line, None if nothing is. Arguments are not looked at, only
    names."""
    words = [word for word in shlex.split(line.replace("…", ""), posix=True)[1:] if word]
    group, at = COMMAND, 0
    while at < len(words):
        word = words[at].rstrip(",;")
        known = {
            name: option
            for option in group.params
            for name in (*option.opts, *option.secondary_opts)
        }
        if word.startswith("-"):
            name = word.partition("=")[0]
            if name not in known and name not in ("--help", "-"):
                return f"{group.name} has no option {name}"
            option = known.get(name)
            at += 2 if option is not None and not option.is_flag and "=" not in word else 1
        elif hasattr(group, "commands"):
            if word not in group.commands:
                return f"there is no command {word}"
            group, at = group.commands[word], at + 1
        else:
            at += 1
    return None


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_is_shown_can_be_typed(path: Path) -> None:
    assert [f"{line}: {why}" for line in shown(path) if (why := wrong(line)) is not None] == []
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    assert set(ALONE.findall(text)) - OPTIONS <= THEIRS


def test_what_cannot_be_typed_is_seen() -> None:
    assert wrong("mirrorlake stauts") == "there is no command stauts"
    assert wrong("mirrorlake -c x.yml status --jsn") == "status has no option --jsn"
    assert wrong("mirrorlake local up --names a --what") is not None
    assert (
        wrong("mirrorlake translate --flow 'a->b' --topic t --partition 0 --offset 42 --reverse")
        is None
    )
    assert sum(len(shown(path)) for path in PAGES) > 200
    assert {"--json", "--no-drain"} <= OPTIONS and "--no-dran" not in OPTIONS
