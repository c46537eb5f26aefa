"""`mirrorlake init`: the smallest topology file for two clusters."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mirrorlake.cli.context import AS_JSON, Context
from mirrorlake.errors import InputError

if TYPE_CHECKING:
    from mirrorlake.library.first_file import FirstFile


def init(
    context: typer.Context,
    source: str | None = typer.Option(None, help="HOST:PORT of a broker to mirror from."),
    target: str | None = typer.Option(None, help="HOST:PORT of a broker to mirror to."),
    topics: str | None = typer.Option(
        None, help="Regular expressions of whole names, with commas between them."
    ),
    source_name: str = typer.Option("source", help="What the file calls the source."),
    target_name: str = typer.Option("target", help="What the file calls the target."),
    output: Path | None = typer.Option(
        None, "-o", "--output", help="The file to write. Default: the one of -c."
    ),
    untried: bool = typer.Option(False, "--untried", help="Write without asking the clusters."),
    as_json: bool = AS_JSON,
) -> None:
    """Write the smallest topology file for two clusters, once both answer; what no option says is
    asked for. No file is overwritten."""
    from mirrorlake.library.first_file import End, first_file, tried

    shared: Context = context.obj
    path = output or shared.config
    if path.exists():
        raise InputError(f"{path} exists; name another file with -o, or edit it")
    file = first_file(
        End(source_name, _asked(source, "--source", "A broker to mirror from (host:port)")),
        End(target_name, _asked(target, "--target", "A broker to mirror to (host:port)")),
        _asked(topics, "--topics", "Topics to mirror (regular expressions)", ".*"),
    )
    file = file if untried else tried(file)
    try:
        with path.open("x", encoding="utf-8") as opened:
            opened.write(file.text)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    document = {
        "file": str(path),
        "flow": file.flow.name,
        "clusters": dict(file.cluster_ids),
        "topics": list(file.topics),
    }
    shared.end(document, as_json, lambda: _show(shared, path, file))


def _asked(given: str | None, option: str, question: str, default: str | None = None) -> str:
    """What an option says, else what a person answers. Raises InputError where no person is."""
    if given is not None:
        return given
    if not _at_a_terminal():
        raise InputError(f"{option} is not given, and there is no terminal to ask at; give it")
    return str(typer.prompt(question, default=default, err=True))


def _at_a_terminal() -> bool:
    return sys.stdin.isatty()


def _show(shared: Context, path: Path, file: "FirstFile") -> None:
    """What the clusters answered, and what to type next."""
    for alias, cluster_id in file.cluster_ids.items():
        shared.out.print(f"{alias} answers: cluster {cluster_id}", soft_wrap=True)
    if file.cluster_ids:
        names = ", ".join(file.topics[:5]) + (", …" if len(file.topics) > 5 else "")
        which = f": {names}" if names else "; change flows.topics, or make one"
        shared.out.print(f"{len(file.topics)} topics match{which}", soft_wrap=True)
    config = "" if path == Path("mirrorlake.yml") else f" -c {shlex.quote(str(path))}"
    shared.out.print(f"{path} is written. Next:", soft_wrap=True)
    for step in ("plan   # what would be done, without doing it", "run    # do it, until Ctrl-C"):
        shared.out.print(f"  mirrorlake{config} {step}", soft_wrap=True)
