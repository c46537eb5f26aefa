"""Process trees: CPU time, memory, and ending them."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from mirrorlake.attempts import attempts


def tree_of(roots: Iterable[int]) -> list[psutil.Process]:
    """The living processes with these ids and all their descendants, each once."""
    by_pid: dict[int, psutil.Process] = {}
    for pid in roots:
        with suppress(psutil.NoSuchProcess):
            root = psutil.Process(pid)
            by_pid |= {one.pid: one for one in (root, *root.children(recursive=True))}
    return list(by_pid.values())


def cpu_seconds(roots: Iterable[int]) -> float:
    """CPU seconds used by process trees, with children that ended and were waited for."""
    total = 0.0
    for process in tree_of(roots):
        with suppress(psutil.Error):  # it ended meanwhile, or belongs to another user
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def memory_mib(
    roots: Iterable[int], part_of_command: str | None, program: str = "python", own: bool = False
) -> float:
    """Resident memory, in MiB, of the processes in trees that run `program` with the argument
    `part_of_command` (None: any). `own` leaves out mapped files, which the system can reclaim."""
    size = 0
    for process in tree_of(roots):
        with suppress(psutil.Error):
            command = process.cmdline()
            named = part_of_command is None or part_of_command in command
            if command and named and program in Path(command[0]).name:
                memory = process.memory_info()
                size += memory.rss - (memory.shared if own else 0)
    return size / 2**20


def resident_bytes(root: int) -> dict[str, int]:
    """Resident bytes of a process tree by kind: its root `driver`, `java`, and other `workers`."""
    sizes = {"driver": 0, "java": 0, "workers": 0}
    for process in tree_of([root]):
        with suppress(psutil.Error):  # it ended meanwhile
            kind = "java" if process.name() == "java" else "workers"
            sizes["driver" if process.pid == root else kind] += process.memory_info().rss
    return sizes


def wait_for_end(processes: Collection[psutil.Process], seconds: float) -> None:
    """Wait for processes to end, then kill what is left after `seconds`; never a reused id."""
    for _ in attempts(seconds, 0.1):
        left = [process for process in processes if _lives(process)]
        if not left:
            return
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _lives(process: psutil.Process) -> bool:
    """Whether it runs and is no zombie, which its parent may not reap for long."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def command_of(pid: int) -> str:
    """Return the command line of a process, empty if it is gone or a zombie."""
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""
