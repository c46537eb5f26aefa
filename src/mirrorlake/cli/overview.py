"""All commands together: what `mirrorlake --help` shows, in groups, each in one line that is whole
at 80 columns; the options that they share, which may stand on either side of a command; and
`mirrorlake command`, any of them with its options given as one text. It is how a job whose
parameters are texts calls them (bundles/command.job.yml), and the notebook 08."""

import shlex
from collections.abc import Sequence
from itertools import islice
from typing import Any

import typer
from typer.core import TyperGroup

from mirrorlake.errors import InputError


class Overview(TyperGroup):
    """Shows commands under the panels that they were registered with, as plain text: typer does so
    by Rich only, which takes longer to import than all the rest."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take `mirrorlake plan -c FILE` for `mirrorlake -c FILE plan`."""
        if args and args[-1] in _WITH_VALUE and "--" not in args:
            ctx.fail(f"Option '{args[-1]}' requires an argument, the topology file.")
        return super().parse_args(ctx, shared_first(args))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each panel as a section of its own, in the order of its first command."""
        shown = {name: one for name, one in self.commands.items() if not one.hidden}
        width = max(map(len, shown))
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in shown.items():
            row = (f"{name:{width}}", command.short_help or "")
            panels.setdefault(getattr(command, "rich_help_panel", None) or "Others", []).append(row)
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)


#: The global options with a value, and those without.
_WITH_VALUE, _ALONE = ("-c", "--config"), ("-v", "--verbose")


def shared_first(words: Sequence[str]) -> list[str]:
    """The words of a command line, with the options that all commands share in front. What stands
    behind `--` stays there."""
    shared: list[str] = []
    own: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            own += [word, *left]
        elif word in _WITH_VALUE:
            value = list(islice(left, 1))  # empty if the line ends without the value
            (shared if value else own).extend([word, *value])
        elif word in _ALONE or word.startswith("--config="):
            shared.append(word)
        else:
            own.append(word)
    return shared + own


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
