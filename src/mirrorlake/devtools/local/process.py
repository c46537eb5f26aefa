"""Starts, recognises and ends processes: guarded ones die with their parent, detached ones outlive
it, and a server runs for a block."""

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from mirrorlake.attempts import attempts
from mirrorlake.devtools.local.ports import is_open
from mirrorlake.errors import InputError
from mirrorlake.processes import command_of

_GUARD = Path(__file__).with_name("guard.py")
_POLL_SECONDS = 0.05


@dataclass
class JvmProcess:
    """A running command. `marker` is in its command line: without it the id is another process'."""

    pid: int
    marker: str
    handle: "subprocess.Popen[bytes] | None" = None

    def alive(self) -> bool:
        """Return whether the process still runs and is still ours."""
        if self.handle is not None:
            # our child: its id is not reused before we waited for it
            return self.handle.poll() is None
        return self.marker in command_of(self.pid)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process is still there and ours."""
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for the process to end, and return whether it ended."""
        if self.handle is not None:
            return self._wait_for_handle(self.handle, seconds)
        return any(self._gone() for _ in attempts(seconds, _POLL_SECONDS))

    def _gone(self) -> bool:
        """Whether the process is gone: one that is ending has no command line, but open files."""
        command = command_of(self.pid)
        return self.marker not in command if command else not _is_ending(self.pid)

    @staticmethod
    def _wait_for_handle(handle: "subprocess.Popen[bytes]", seconds: float) -> bool:
        try:
            handle.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        for pipe in (handle.stdin, handle.stdout):
            if pipe is not None:
                pipe.close()
        return True


def start_guarded(command: Sequence[str], marker: str, output: Path) -> JvmProcess:
    """Start a command that dies with this process; its output is appended to `output`."""
    with output.open("ab") as log:
        guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    answer = guard.stdout.readline().strip() if guard.stdout is not None else b""
    if not answer.isdigit():
        guard.kill()
        JvmProcess(guard.pid, marker, guard).wait(5)
        raise InputError(f"{command[0]} could not be started: see {output}")
    return JvmProcess(int(answer), marker, guard)


def start_detached(command: Sequence[str], marker: str, output: Path) -> JvmProcess:
    """Start a command that outlives this process; its output is appended to `output`."""
    with output.open("ab") as log:
        child = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    for _ in attempts(math.inf, _POLL_SECONDS):  # its command line appears a moment after the start
        if marker in command_of(child.pid) or child.poll() is not None:
            break
    return JvmProcess(child.pid, marker, child)


def _is_ending(pid: int) -> bool:
    """Return whether a process without a command line has threads left that keep files open."""
    try:
        process = psutil.Process(pid)
        return (
            process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
            or process.num_threads() > 1
        )
    except psutil.Error:
        return False


#: How long a server may take to accept connections, seconds: on a busy machine a metastore takes
#: minutes to create its tables.
_START_SECONDS = 300.0
_END_SECONDS = 10.0


@contextmanager
def server(command: Sequence[str], port: int, output: Path) -> Iterator[None]:
    """Run a command while the block runs, which begins once it listens on a port of 127.0.0.1;
    appends to `output`. Raises InputError if it ends by itself, or listens too late."""
    process = start_guarded(command, str(port), output)
    try:
        for last in attempts(_START_SECONDS, 0.05):
            if is_open(port):
                break
            if last or not process.alive():
                raise InputError(f"{command[0]} does not listen on port {port}: see {output}")
        yield
    finally:
        process.signal(signal.SIGKILL)
        process.wait(_END_SECONDS)
