"""The `mirrorlake` command. Exit codes: 0 done and healthy; 1 the replication needs somebody; 2 wrong
input, or a cluster or lake that the command cannot do without does not answer."""

import logging
import sys
from pathlib import Path

import typer

from mirrorlake import __version__
from mirrorlake.cli import (
    bench,
    dashboard,
    demo,
    groups,
    importing,
    inspect,
    local,
    logs,
    maintain,
    replicate,
    resolve,
    spark_queries,
    verify,
)
from mirrorlake.cli.context import Context
from mirrorlake.errors import MirrorlakeError
from mirrorlake.terminal import end_silently

logger = logging.getLogger(__name__)

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
    config: Path = typer.Option(Path("mirrorlake.yml"), "-c", "--config", help="The topology file."),
    verbose: bool = typer.Option(False, "-v", "--verbose", help="Say more on stderr."),
) -> None:
    """Read the options that every command shares."""
    shared = context.obj = Context(config, verbose)
    logs.install(lambda: shared.err, verbose)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


inspect.register(app)
spark_queries.register(app)
replicate.register(app)
resolve.register(app)
maintain.register(app)
verify.register(app)
groups.register(app)
local.register(app)
demo.register(app)
dashboard.register(app)
bench.register(app)
importing.register(app)


def main() -> None:
    """Entry point: run a command, and turn an error of ours into one sentence and its exit code."""
    end_silently()
    try:
        app()
    except SystemExit as end:
        if end.code not in (None, 0):
            raise  # of a good end nothing is said: a wheel task of Databricks takes any SystemExit for a failure
    except MirrorlakeError as error:
        if logs.as_json():
            logger.error("%s", error)
        else:
            typer.echo(f"mirrorlake: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
