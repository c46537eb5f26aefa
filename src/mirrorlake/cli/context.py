"""What commands share: the lake, opened when it is first needed, and the two streams."""

import json
import logging
import os
import shlex
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import mirrorlake
from mirrorlake.cli import logs
from mirrorlake.errors import InputError
from mirrorlake.terminal import plain_console

if TYPE_CHECKING:
    from rich.console import Console

    from mirrorlake.library.progress import Progress

logger = logging.getLogger(__name__)

ENGINE = typer.Option(
    None,
    "--engine",
    metavar="spark|duckdb",
    help="The engine that reads the tables. Default: DuckDB; for a catalog's own tables the SQL "
    "warehouse of the file, else DuckDB where their files are at hand, else Spark.",
)
AS_JSON = typer.Option(False, "--json", help="Print one JSON document.")
#: The default of -c, the topology file.
TOPOLOGY_FILE = Path("mirrorlake.yml")
#: The width of tables without a terminal: a program that reads a pipe wants each row on one line.
PIPED_COLUMNS = 200
#: How much the clocks of two machines may differ.
_AHEAD = timedelta(minutes=5)


def check_folder(file: Path) -> None:
    """Raises InputError where a file cannot be written in the end, since its folder is not there:
    before hours of work have gone into it."""
    folder = file.absolute().parent
    if not folder.is_dir():
        raise InputError(f"there is no directory {folder} to write {file.name} into")


def check_condition(where: str) -> None:
    """Raises InputError for an empty condition, as of a variable of the shell that is not set."""
    if not where.strip():
        raise InputError(
            "--where is empty; write a condition about columns of `records`, such as 'offset < 42'"
        )


def typed(config: Path, command: str) -> str:
    """A command as a person types it to have it go by a topology file."""
    file = "" if config == TOPOLOGY_FILE else f" -c {shlex.quote(str(config))}"
    return f"mirrorlake{file} {command}"


class Context:
    """Made once for a command by the `-c` option."""

    def __init__(self, config: Path, verbose: bool = False) -> None:
        self.config = config
        self.engine: str | None = None
        self.verbose = verbose

    @cached_property
    def err(self) -> "Console":
        """What a person reads beside answers."""
        return plain_console(stderr=True)

    @cached_property
    def out(self) -> "Console":
        """Answers."""
        out = plain_console()
        wide = not out.is_terminal and "COLUMNS" not in os.environ
        return plain_console(width=PIPED_COLUMNS) if wide else out

    @cached_property
    def lake(self) -> "mirrorlake.OpenLake":
        """The lake of the topology file, which alone is read by now. Raises TopologyError."""
        lake = mirrorlake.open(self.config, engine=self.engine)
        lake.internals.say = self.say
        lake.internals.in_a_command()
        return lake

    def by(self, engine: str | None) -> "Context":
        """The same, for a command that names who reads the tables."""
        self.engine = engine
        return self

    def watch(self, progress: "Progress") -> None:
        """Have `run` report how it goes."""
        self.lake.internals.progress = progress

    def say(self, line: str) -> None:
        """One line for a person, on stderr, so that stdout holds answers only."""
        if logs.as_json():
            logger.info("%s", line)
        else:
            self.err.print(line, soft_wrap=True)

    def end(
        self, document: object, as_json: bool, show: Callable[[], object], good: bool = True
    ) -> None:
        """Print an answer, as one JSON document or by `show`; ends the command with exit code 1
        unless all is `good`."""
        if as_json:
            self.answer(document)
        else:
            show()
        if not good:
            raise typer.Exit(1)

    def answer(self, document: object) -> None:
        """One JSON document on stdout."""
        typer.echo(json.dumps(document, default=str, ensure_ascii=False))


def time_of(option: str, text: str) -> datetime:
    """A time that an option was given, in UTC where it names no zone. Raises InputError."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise InputError(
            f"{option} {text}: write a time as 2026-11-21 or 2026-11-21T03:12:00, both in UTC, "
            "or with its zone, as 2026-11-21T03:12:00+01:00"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def past_time_of(option: str, text: str) -> datetime:
    """The same of a time that has been. One to come is a mistyped year, or a local time without its
    zone, by which everything would be taken, or nothing."""
    moment, now = time_of(option, text), datetime.now(timezone.utc)
    if moment > now + _AHEAD:
        raise InputError(
            f"{option} {text} is yet to come: it is {now:%Y-%m-%dT%H:%M:%S} in UTC, in which a "
            "time without a zone is read; write 2026-11-21T03:12:00+01:00 for one with its zone"
        )
    return moment
