"""Process trees, read from /proc: their CPU time, and their end."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(roots: Iterable[int], proc: Path = Path("/proc")) -> float:
    """CPU seconds so far of process trees, children that ended and were waited for included."""
    table = _processes(proc)
    return sum(table[pid][1] for pid in _tree(roots, table)) / _TICKS


def memory_mib(roots: Iterable[int], part_of_command: str, proc: Path = Path("/proc")) -> float:
    """Resident memory of the Python processes of trees whose command line holds a text, in MiB."""
    pages = 0
    for pid in _tree(roots, _processes(proc)):
        try:
            command = (proc / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if "python" in Path(command[0]).name and part_of_command in command:
                pages += int((proc / str(pid) / "statm").read_text(encoding="utf-8").split()[1])
        except OSError:
            continue  # it ended meanwhile
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def commands_of_tree(roots: Iterable[int]) -> dict[int, str]:
    """Command lines of process trees by process id: what identifies each of them later."""
    return {pid: command_of(pid) for pid in _tree(roots, _processes(Path("/proc")))}


def wait_for_end(commands: Mapping[int, str], seconds: float) -> None:
    """Wait until these processes are gone; kill those that are left after so long. A reused id is left alone."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while left := [pid for pid, command in commands.items() if command and command_of(pid) == command]:
        if time.monotonic() > deadline:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            return
        pause.wait(0.1)


def _processes(proc: Path) -> dict[int, tuple[int, int]]:
    """Give (parent, CPU ticks) of every process."""
    found = {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            try:
                # The command's name may hold spaces; what follows its closing bracket does not.
                values = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            found[int(entry.name)] = (int(values[1]), sum(map(int, values[11:15])))
    return found


def _tree(roots: Iterable[int], table: Mapping[int, tuple[int, int]]) -> set[int]:
    tree = set(roots) & table.keys()
    while more := {pid for pid, (parent, _) in table.items() if parent in tree} - tree:
        tree |= more
    return tree


def command_of(pid: int) -> str:
    """Return the command line of a process, empty when there is none (or only a zombie of it)."""
    entry = Path(f"/proc/{pid}/cmdline")
    if Path("/proc/self/cmdline").exists():
        try:
            return entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    told = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, timeout=10, check=False
    )
    return told.stdout.strip()
