"""The `mirrorlake` command. Exit codes: 0 done and healthy; 1 the replication needs attention; 2
wrong input, or a cluster or lake that the command cannot do without does not answer."""

import logging
from collections.abc import Sequence
from pathlib import Path

import typer

from mirrorlake import __version__
from mirrorlake.cli import local, logs
from mirrorlake.cli.bench import bench
from mirrorlake.cli.command import command
from mirrorlake.cli.context import Context
from mirrorlake.cli.dashboard import dashboard
from mirrorlake.cli.demo import demo
from mirrorlake.cli.forget import forget
from mirrorlake.cli.groups import divergence, failback, failover, groups
from mirrorlake.cli.importing import import_
from mirrorlake.cli.inspect import plan, sql, status, translate
from mirrorlake.cli.maintain import maintain
from mirrorlake.cli.migrate import migrate
from mirrorlake.cli.register import register
from mirrorlake.cli.replay import replay
from mirrorlake.cli.replicate import run
from mirrorlake.cli.resolve import resolve
from mirrorlake.cli.restore import restore
from mirrorlake.cli.spark_queries import translate_checkpoint
from mirrorlake.cli.trace import trace
from mirrorlake.cli.verify import verify
from mirrorlake.errors import MirrorlakeError
from mirrorlake.extras import missing_by
from mirrorlake.library.store_refusals import store_refusal
from mirrorlake.terminal import end_silently

logger = logging.getLogger(__name__)

_MEANINGS = {1: "exit code 1, the replication needs attention", 2: "exit code 2, it was not done"}

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Kafka replication through Delta Lake: exactly once, with an exact map of offsets.",
)


@app.callback()
def options(
    context: typer.Context,
    config: Path = typer.Option(
        Path("mirrorlake.yml"), "-c", "--config", help="The topology file."
    ),
    verbose: bool = typer.Option(False, "-v", "--verbose", help="Say more on stderr."),
) -> None:
    """Read the options that every command shares."""
    shared = context.obj = Context(config, verbose)
    logs.install(lambda: shared.err, verbose)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


# fmt: off
for added in (
    plan, status, translate, sql, translate_checkpoint, run, resolve, register, maintain, forget,
    verify, trace, replay, restore, groups, failover, failback, divergence, migrate, demo,
    dashboard, bench,
):
    app.command()(added)
# fmt: on
app.command("import")(import_)
app.command(hidden=True)(command)
app.add_typer(local.app, name="local")


class Ended(SystemExit):
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
        Ended: the exit code is 1 or 2. Of a good end nothing is raised: a wheel task of Databricks
            takes any SystemExit for a failure.
    """
    end_silently()
    try:
        app(args=words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if code:
            meaning = _MEANINGS.get(code, f"exit code {code}")
            raise Ended(code, f"{meaning}; what this command printed says why") from None
    except MirrorlakeError as error:
        raise _ended(error) from None
    except ModuleNotFoundError as error:
        if (missing := missing_by(error)) is None:
            raise
        raise _ended(missing) from None
    except OSError as error:
        if (refusal := store_refusal(error)) is None:
            raise
        raise _ended(refusal) from None


def _ended(error: MirrorlakeError) -> Ended:
    """Say what is wrong, in a sentence."""
    if logs.as_json():
        logger.error("%s", error)
    else:
        typer.echo(f"mirrorlake: {error}", err=True)
    return Ended(error.exit_code, f"{_MEANINGS[error.exit_code]}: {error}")


if __name__ == "__main__":
    main()
