"""Notebook 08: a command of the command line, its output below the cell."""

from mirrorlake.cli.main import CommandEnded, main
from mirrorlake.errors import InputError, ReplicationError
from mirrorlake.notebook.host import Notebook


def run(nb: Notebook) -> CommandEnded | None:
    """Run the widgets' command in this process, with its session. Output goes to the cell.

    Returns:
        How it ended; None if it is done, and all is healthy.
    """
    given = nb.widget("command"), nb.widget("arguments")
    try:
        main(["-c", str(nb.topology_file), "command", "--", *given])
    except CommandEnded as end:
        return end
    return None


def checked(ended: CommandEnded | None) -> str:
    """How a command ended, as a sentence. Raises it, as InputError or ReplicationError, where the
    exit code is not 0: a job that runs the page fails by that. A kernel takes SystemExit for its
    own end, and not for a failure."""
    if ended is None:
        return "exit code 0: done, and healthy"
    kind = InputError if ended.code == InputError.exit_code else ReplicationError
    raise kind(str(ended))
