"""The `mirrorlake` command. Exit codes: 0 done and healthy; 1 the replication needs attention; 2
wrong input, or a cluster or lake that the command cannot do without does not answer; 141 what read
its output through a pipe ended before it, as shells say of a program that SIGPIPE ends."""

import faulthandler
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import typer

from mirrorlake import __version__
from mirrorlake.cli import local, logs
from mirrorlake.cli.bench import bench
from mirrorlake.cli.completion import offer_at_the_first_tab
from mirrorlake.cli.context import TOPOLOGY_FILE, Context
from mirrorlake.cli.dashboard import dashboard
from mirrorlake.cli.groups import divergence, failback, failover, groups
from mirrorlake.cli.importing import import_
from mirrorlake.cli.init import init
from mirrorlake.cli.inspect import doctor, plan, sql, status, trace, translate
from mirrorlake.cli.local import demo
from mirrorlake.cli.migrate import migrate
from mirrorlake.cli.overview import Overview, command
from mirrorlake.cli.replicate import run
from mirrorlake.cli.resends import replay, restore
from mirrorlake.cli.resolve import resolve
from mirrorlake.cli.spark_queries import translate_checkpoint
from mirrorlake.cli.upkeep import forget, maintain, register
from mirrorlake.cli.verify import verify
from mirrorlake.errors import MirrorlakeError
from mirrorlake.extras import missing_by
from mirrorlake.heaps import collect_rarely
from mirrorlake.library.store_refusals import broker_refusal, disk_refusal, store_refusal
from mirrorlake.terminal import drop_unread, end_silently, write_any_text

logger = logging.getLogger(__name__)

_UNREAD = 141
_MEANINGS = {1: "exit code 1, the replication needs attention", 2: "exit code 2, it was not done"}

app = typer.Typer(
    cls=Overview,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Kafka replication through Delta Lake: exactly once, with an exact map of offsets.",
)


def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    config: Path = typer.Option(TOPOLOGY_FILE, "-c", "--config", help="The topology file."),
    verbose: bool = typer.Option(False, "-v", "--verbose", help="Log more on stderr."),
    _version: bool = typer.Option(
        False, "--version", is_eager=True, callback=_print_version, help="Print the version."
    ),
) -> None:
    """Read the options that every command shares."""
    shared = context.obj = Context(config, verbose)
    logs.install(lambda: shared.err, verbose)


#: The commands by task, each with its line of `--help`: up to 56 characters, for 80 columns.
COMMANDS: Mapping[str, Sequence[tuple[Callable[..., object], str]]] = {
    "Start": (
        (demo, "Two clusters, a crash, a failover, and the proof."),
        (init, "Write the smallest topology file for two clusters."),
        (import_, "Make a topology file of MirrorMaker's files."),
        (doctor, "Check programs, lake, clusters and rights."),
        (plan, "Show what would be done, without doing it."),
        (run, "Replicate: land, produce, keep both sides alike."),
        (register, "Give tables at a path or URL names in a catalog."),
    ),
    "Look": (
        (status, "Show what needs attention, then how flows stand."),
        (groups, "Show where consumer groups stand on both sides."),
        (trace, "Tell one record's life, from written to read."),
        (translate, "Translate a position between source and target."),
        (translate_checkpoint, "Translate the checkpoint of a streaming query."),
        (sql, "Run a query over the tables and views of the lake."),
        (dashboard, "Show the dashboard on a local page."),
    ),
    "Act": (
        (resolve, "List open incidents with the choices, and decide."),
        (failover, "Move consumer groups to the target of a flow."),
        (failback, "Move them back to its source."),
        (migrate, "Move them from MirrorMaker's copies to ours."),
        (replay, "Send staged records again, by a predicate."),
        (restore, "Rebuild topics from the lake, as of a time."),
        (forget, "Delete staged records, by a predicate."),
        (maintain, "Delete old records, and keep tables small."),
    ),
    "Prove": (
        (verify, "Compare source, stage and target by content."),
        (divergence, "List source records that never reached the target."),
    ),
    "Develop": (
        (bench, "Race against MirrorMaker 2 on this machine."),
        (version, "Print the version."),
    ),
}
for panel, added in COMMANDS.items():
    for function, line in added:
        name = function.__name__.strip("_").replace("_", "-")
        app.command(name, short_help=line, rich_help_panel=panel)(function)
app.command(hidden=True)(command)
app.add_typer(
    local.app,
    name="local",
    short_help="Embedded Kafka clusters for development.",
    rich_help_panel="Develop",
)
offer_at_the_first_tab()


class CommandEnded(SystemExit):
    """The end of a command that did not end well. A shell gets `code`; who shows the exception
    itself, as a job's run does, gets a sentence."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def main(words: Sequence[str] | None = None) -> None:
    """Entry point: run a command, and turn an error of ours into one sentence and its exit code.

    Args:
        words: the command and its options; those of the process for None.

    Raises:
        CommandEnded: the exit code is 1, 2 or 141. Of a good end nothing is raised: a wheel task of
            Databricks takes any SystemExit for a failure.
    """
    try:
        _run(words)
        if sys.stdout is not None:
            sys.stdout.flush()  # the interpreter reports failures after this
    except BrokenPipeError:
        if not drop_unread():  # another pipe broke
            raise
        raise CommandEnded(_UNREAD, "what read the output has ended") from None
    finally:
        drop_unread()


def _run(words: Sequence[str] | None) -> None:
    end_silently()
    write_any_text()
    _have_a_home()
    if words is None:
        collect_rarely()
        if sys.stderr is not None:  # else a library that ends the process leaves no word
            faulthandler.enable(all_threads=False)
    try:
        app(args=words)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # click exits with 1 for any broken pipe
            raise end.__context__ from None
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if code:
            meaning = _MEANINGS.get(code, f"exit code {code}")
            raise CommandEnded(code, f"{meaning}; what this command printed says why") from None
    except MirrorlakeError as error:
        raise _ended(error) from None
    except ModuleNotFoundError as error:
        if (missing := missing_by(error)) is None:
            raise
        raise _ended(missing) from None
    except Exception as error:
        refusal = store_refusal(error) or disk_refusal(error) or broker_refusal(error)
        if refusal is None:
            raise
        logging.getLogger("mirrorlake").info("where it came from", exc_info=error)  # with -v only
        raise _ended(refusal) from None


def _have_a_home() -> None:
    """A user whom the system does not know, as Kubernetes may make them, has no home unless `HOME`
    names one, and libraries look for it."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = tempfile.gettempdir()


def _ended(error: MirrorlakeError) -> CommandEnded:
    """Say what is wrong, in a sentence."""
    if logs.as_json():
        logger.error("%s", error)
    else:
        typer.echo(f"mirrorlake: {error}", err=True)
    return CommandEnded(error.exit_code, f"{_MEANINGS[error.exit_code]}: {error}")


if __name__ == "__main__":
    main()
