"""What is installed for fish and zsh completes a line as it is typed, where these shells are on
PATH; bash is in `test_completion.py`."""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
FILE = """
clusters: {east: {bootstrap_servers: "a:1"}, west: {bootstrap_servers: "b:1"}}
lake: {path: ./lake}
flows: {"east->west": {}, "east->north": {}, "west->east": {}}
"""
#: How long a shell may take for what it writes, seconds, on a machine that does other things too.
SECONDS = 60.0
#: What zsh writes once it reads a line: from here on what is pasted comes between marks.
READS = "\x1b[?2004h"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder of a person who has installed the completion in a shell, with a topology file."""
    shell: str = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on PATH")
    folder = tmp_path_factory.mktemp(shell)
    (folder / "mirrorlake.yml").write_text(FILE, encoding="utf-8")
    install = "mirrorlake --install-completion; exit $status"
    done = subprocess.run(
        [shell, "-c", install], env=of_person(folder), capture_output=True, text=True
    )
    assert done.returncode == 0 and f"{shell} completion installed" in done.stdout, done.stderr
    return folder


def of_person(home: Path) -> dict[str, str]:
    """The environment of a person with that home."""
    path = f"{BIN}:{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return {**kept, "HOME": str(home), "PATH": path, "TERM": "dumb"}


@pytest.mark.parametrize("home", ["fish"], indirect=True)
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("mirrorlake groups --flow 'west", ["west->east"]),
        *(
            pytest.param(line, offered, marks=pytest.mark.wide("test_fish"))
            for line, offered in (
                ("mirrorlake groups --flow east", ["east->north", "east->west"]),
                ("mirrorlake -c mirrorlake.yml run --flow west", ["west->east"]),
                ("mirrorlake resol", ["resolve"]),
            )
        ),
    ],
)
def test_fish(home: Path, line: str, offered: list[str]) -> None:
    script = "source ~/.config/fish/completions/mirrorlake.fish; complete -C $argv[1]"
    done = subprocess.run(
        ["fish", "-c", script, line], env=of_person(home), cwd=home, capture_output=True, text=True
    )
    assert [row.split("\t")[0] for row in done.stdout.splitlines()] == offered, done.stderr


@pytest.mark.parametrize("home", ["zsh"], indirect=True)
def test_zsh(home: Path) -> None:
    typed = {
        "mirrorlake groups --flow west\t": r"--flow west-\>east ",
        "mirrorlake groups --flow 'east->w\t": "--flow 'east->west' ",
        "mirrorlake resol\t": "mirrorlake resolve ",
    }
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(home)
        os.execvpe("zsh", ["zsh", "-i"], of_person(home))
    try:
        written_until(terminal, READS)
        for line, wanted in typed.items():
            os.write(terminal, line.encode())
            written_until(terminal, wanted)
            # The line is given up. Not by Ctrl-C, which zsh may get while it still completes.
            os.write(terminal, b"\x15")
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


def written_until(terminal: int, wanted: str) -> None:
    """Read what a shell writes until a text is among it. AssertionError where it never is."""
    written, ends = "", time.monotonic() + SECONDS
    while wanted not in written and time.monotonic() < ends:
        if select.select([terminal], [], [], 0.2)[0]:
            written += os.read(terminal, 65_536).decode(errors="replace")
    assert wanted in written, written
