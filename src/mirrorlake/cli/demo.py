"""`mirrorlake demo`: the script in two minutes, played by `mirrorlake.devtools.demo.script`."""

from functools import partial
from pathlib import Path

import typer

from mirrorlake.cli.context import Context


def demo(
    context: typer.Context,
    directory: Path = typer.Option(
        Path("mirrorlake-demo"), help="The folder of the demo; it is deleted and made again."
    ),
    records: int = typer.Option(60_000, min=1_000, help="Records to produce."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document at the end."),
) -> None:
    """Two real clusters, a flow, a crash, a failover, and the proof: nothing lost, nothing
    twice."""
    from mirrorlake.devtools.demo.script import play
    from mirrorlake.spark.class_archive import make_behind

    shared: Context = context.obj
    result = play(directory, records, partial(_say, shared))
    if as_json:
        shared.answer(vars(result))
    make_behind(shared.say)  # the proof is printed by now: nothing waits for this
    if not result.proven:
        raise typer.Exit(1)


def _say(shared: Context, line: str) -> None:
    """A line of the script; its chapters and what it proves stand out."""
    from rich.text import Text

    text = Text(line)
    text.highlight_regex(r"^\d/\d", "bold")
    text.highlight_regex(r"\bequal, in order, each once$|\b0 twice, 0 never$", "green")
    text.highlight_regex(r"NOT equal$", "red")
    shared.err.print(text, soft_wrap=True)
