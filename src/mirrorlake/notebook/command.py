"""Notebook 08: a command of the command line, its output below the cell."""

from mirrorlake.cli.main import CommandEnded, main
from mirrorlake.notebook.host import Notebook


def run(nb: Notebook) -> str:
    """Run the widgets' command in this process, with its session. Output goes to the cell.

    Returns:
        How it ended, as a sentence.
    """
    given = nb.widget("command"), nb.widget("arguments")
    try:
        main(["-c", str(nb.topology_file), "command", "--", *given])
    except CommandEnded as end:
        return str(end)
    return "exit code 0: done, and healthy"
