"""Waiting for the topology file: a job may be deployed before the file is in place."""

import stat
from collections.abc import Callable
from pathlib import Path
from threading import Event

from mirrorlake.run.options import stopped_early

#: How often to look for the file, seconds: one request to a file system.
LOOK_SECONDS = 10.0
#: How often to repeat what it waits for, seconds.
SAY_SECONDS = 600.0


def wait_for_topology(
    path: Path, stop: Event, say: Callable[[str], None], once: bool = False
) -> bool:
    """Wait until a topology file exists and is not empty, whatever its content. A path that can
    never become one, as below a regular file, counts as there: its reader refuses it.

    Args:
        path: the file.
        stop: ends the wait when it is set.
        say: gets a line when the wait begins, every ten minutes of it, and when it is over.
        once: whether a run with an end is waiting for it.

    Returns:
        Whether the file exists; False if `stop` was set first.

    Raises:
        ReplicationError: `stop` was set first and `once` is true: the run has not reached its end.
    """
    looks = 0
    while not _is_there(path):
        if looks % round(SAY_SECONDS / LOOK_SECONDS) == 0:
            say(
                f"waiting for the topology file {path}{_hint(path)}: looking for it every "
                f"{LOOK_SECONDS:.0f} s"
            )
        if stop.wait(LOOK_SECONDS):
            if once:
                raise stopped_early()
            return False
        looks += 1
    if looks:
        say(f"the topology file {path} is there")
    return True


def _is_there(path: Path) -> bool:
    try:
        found = path.stat()
        # an empty file is being written
        return found.st_size > 0 or not stat.S_ISREG(found.st_mode)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # its reader reports what is wrong


def _hint(path: Path) -> str:
    if not path.parent.is_dir():
        return ", whose folder is not there either"
    others = sorted(each.name for each in path.parent.glob("*.y*ml") if each.name != path.name)
    return f" (its folder has {', '.join(others[:5])})" if others else ""
