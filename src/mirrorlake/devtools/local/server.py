"""A server of this machine for the time of a block: it ends with it, and with this process."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mirrorlake.attempts import attempts
from mirrorlake.devtools.local.ports import is_open
from mirrorlake.devtools.local.process import start_guarded
from mirrorlake.errors import InputError

#: How long a server may take until it takes connections: on a busy machine a metastore takes
#: minutes to make its tables.
_START_SECONDS = 300.0
_END_SECONDS = 10.0


@contextmanager
def server(command: Sequence[str], port: int, output: Path) -> Iterator[None]:
    """Run a command until the block ends, which begins once it listens on a port of 127.0.0.1; what
    it prints is appended to `output`. Raises InputError where it ends by itself, or listens too
    late."""
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
