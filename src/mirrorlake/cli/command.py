"""`mirrorlake command`: any command, its options given as one text. It is how a job whose
parameters are texts calls them (bundles/command.job.yml), and the notebook 08."""

import shlex

import typer

from mirrorlake.errors import InputError


def command(
    context: typer.Context,
    name: str = typer.Argument(..., help="The command, such as plan."),
    arguments: str = typer.Argument(
        "", help="The options of the command, in one text that is split as by a POSIX shell."
    ),
) -> None:
    """Run a command whose options are one text, as a job's parameter is."""
    assert context.parent is not None  # the `mirrorlake` that `-c` was given to
    known: dict[str, typer.core.TyperCommand] = context.parent.command.commands  # type: ignore[attr-defined]
    first, *rest = words_of(f"{name} {arguments}")
    if first not in known or first == context.info_name:
        shown = sorted(key for key, command_known in known.items() if not command_known.hidden)
        raise InputError(f"there is no command {first}; known are {', '.join(shown)}")
    with known[first].make_context(first, rest, parent=context.parent) as inner:
        known[first].invoke(inner)


def words_of(text: str) -> list[str]:
    """The words of a text, by a POSIX shell's rules for quotes: nothing is expanded, and `>` is a
    letter. Raises InputError for an open quote, or no word at all."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(
            f"{text.strip()} cannot be split into words ({error}); close each quote"
        ) from None
    if not words:
        raise InputError("no command was given; write one such as plan")
    return words
