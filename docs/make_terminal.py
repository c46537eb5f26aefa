"""Makes terminal.svg, what README shows of a terminal, from a real run: `make screenshots`.

Two embedded clusters with records in them, `mirrorlake run` until it replicates, and commands that
ask the lake, each at a terminal of this program's own; what that holds then is drawn by Rich.
"""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from fcntl import ioctl
from io import StringIO
from pathlib import Path
from struct import pack
from tempfile import TemporaryDirectory
from termios import TIOCSWINSZ

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).with_name("terminal.svg")
COLUMNS, ROWS = 120, 40
#: How long a run may take until it says that it replicates, and how long it goes on, seconds.
BEGINS, GOES_ON = 120.0, 20.0
#: What `run` says once it replicates, of `local up`'s two clusters.
REPLICATES = re.compile(r"Ctrl-C")
ASKED = (
    "status",
    "translate --flow 'east->west' --topic orders --partition 0 --offset 42",
    "sql 'SELECT topic, partition, source_first, target_first, record_count "
    "FROM offset_translation LIMIT 4'",
)
_PARTS = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(\r?\n)|(\r)|([^\x1b\r\n]+)|(\x1b)")


def screen(written: str) -> list[str]:
    """What a terminal shows of what was written to it, line by line, with its colours: of the codes
    that move, those which Rich writes to draw its live lines again. Pure."""
    lines, at = [""], 0
    for code, kind, newline, start, text, _ in _PARTS.findall(written):
        if newline:
            at += 1
            lines += [""] * (at + 1 - len(lines))
        elif start:
            continue  # a line is cleared before it is written again
        elif kind == "A":
            at = max(0, at - int(code or 1))
        elif kind == "K":
            lines[at] = ""
        elif kind == "m":
            lines[at] += f"\x1b[{code}m"
        elif text:
            lines[at] += text
    while lines and not Text.from_ansi(lines[-1]).plain.strip():
        lines.pop()
    return lines


def at_a_terminal(
    words: Sequence[str], folder: Path, until: Callable[[str], bool] = lambda written: False
) -> str:
    """Run a command at a terminal, until it ends, or is interrupted once `until` holds of what it
    has written; returns that."""
    ours, its = pty.openpty()
    ioctl(its, TIOCSWINSZ, pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "MIRRORLAKE_TRACKING": "off"}
    environment.pop("COLUMNS", None)
    process = subprocess.Popen(
        words, cwd=folder, stdin=its, stdout=its, stderr=its, env=environment, close_fds=True
    )
    os.close(its)
    written, ends = b"", time.monotonic() + BEGINS
    while time.monotonic() < ends:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                written += os.read(ours, 65536)
            except OSError:  # the other end is closed: the command has ended
                break
        if until(written.decode(errors="replace")):
            break
    shown = written.decode(errors="replace")
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        while select.select([ours], [], [], 60)[0]:
            try:
                os.read(ours, 65536)
            except OSError:
                break
    process.wait(60)
    os.close(ours)
    return shown


def replicates() -> Callable[[str], bool]:
    """A condition: some time after a run has said that it replicates."""
    since: list[float] = []

    def holds(written: str) -> bool:
        if not since and REPLICATES.search(written):
            since.append(time.monotonic())
        return bool(since) and time.monotonic() - since[0] > GOES_ON

    return holds


def main() -> int:
    """Make the picture. Returns the exit code."""
    mirrorlake = str(Path(sys.executable).with_name("mirrorlake"))
    shown: list[tuple[str, list[str]]] = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([mirrorlake, "local", "up", "--load"], cwd=folder, check=True)
        try:
            written = at_a_terminal([mirrorlake, "run"], folder, replicates())
            shown.append(("run", screen(written)))
            for line in ASKED:
                command = ["/bin/sh", "-c", f"{mirrorlake} {line}"]
                shown.append((line, screen(at_a_terminal(command, folder))))
        finally:
            subprocess.run([mirrorlake, "local", "down"], cwd=folder, check=True)
    PICTURE.write_text(drawn(shown), encoding="utf-8")
    sys.stdout.write(f"{PICTURE}\n")
    return 0


def drawn(shown: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Commands and what each wrote, as an SVG that fetches no font. Pure."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), markup=False, highlight=False)
    for command, lines in shown:
        console.print(Text("$ ", "green") + Text(f"mirrorlake {command}", "bold"), soft_wrap=True)
        for line in lines:
            console.print(Text.from_ansi(line), soft_wrap=True)
        console.print()
    picture = console.export_svg(title="mirrorlake", theme=MONOKAI)
    return re.sub(r"@font-face\s*\{[^}]*\}\s*", "", picture)


if __name__ == "__main__":
    sys.exit(main())
