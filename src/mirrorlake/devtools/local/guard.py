"""Runs one command and kills it when the parent dies, for whatever reason.

    python -I -S guard.py COMMAND...

The parent holds the write end of this process's standard input. When the parent ends, even by kill
-9, the pipe closes and the guard kills the command. This works on every Unix and whichever thread
started it, which PR_SET_PDEATHSIG does not. The first line on standard output is the command's
process id; the command's output goes to standard error. Standard library only: it is run by its
path, so that it starts in 20 ms.
"""

import contextlib
import os
import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    """Run `command` to its end or to the end of standard input, and return its exit code."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno())
    threading.Thread(target=_kill_at_end_of_input, args=(child,), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), f"{child.pid}\n".encode())
    return child.wait()


def _kill_at_end_of_input(child: "subprocess.Popen[bytes]") -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    child.kill()


if __name__ == "__main__":
    sys.exit(abs(main(sys.argv[1:])))
