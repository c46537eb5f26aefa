"""Embedded Kafka clusters: `mirrorlake local` has them for development, with their topology file,
`mirrorlake demo` for the script in two minutes that `mirrorlake.devtools.demo.script` plays."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mirrorlake.cli.context import AS_JSON, Context
from mirrorlake.terminal import print_table

if TYPE_CHECKING:
    from mirrorlake.devtools.local.develop import ClusterStatus

DIRECTORY = typer.Option(
    Path(".mirrorlake"), "--directory", help="Where brokers keep data and logs."
)


app = typer.Typer(no_args_is_help=True, help="Embedded Kafka clusters for development.")


@app.command()
def up(
    context: typer.Context,
    name: list[str] = typer.Option(
        ["east", "west"], help="The alias of a cluster; may be given several times."
    ),
    brokers: int = typer.Option(1, min=1, help="Brokers of each cluster."),
    directory: Path = DIRECTORY,
    load: bool = typer.Option(
        False, "--load", help="Make topics orders and payments, and write into them for an hour."
    ),
    rate: int = typer.Option(
        100, min=1, help="With --load: records a second, of both topics together."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Start clusters that outlive this command, and write the topology file if there is none. With
    --load there is something to replicate: a producer, and a consumer group `billing`, which `local
    down` ends."""
    from mirrorlake.devtools.local import develop

    shared: Context = context.obj
    with shared.err.status("starting Kafka…"):
        statuses = develop.up(
            directory, name, brokers, topology=shared.config, load=rate if load else None
        )
    _show(shared, statuses, as_json)
    if not as_json and shared.config.exists():
        shared.say(
            f"next: `mirrorlake plan` shows what {shared.config} would do, `mirrorlake run` does it"
        )


@app.command()
def down(context: typer.Context, directory: Path = DIRECTORY, as_json: bool = AS_JSON) -> None:
    """Stop the clusters; their data stays."""
    from mirrorlake.devtools.local import develop

    _show(context.obj, develop.down(directory), as_json)


@app.command()
def status(context: typer.Context, directory: Path = DIRECTORY, as_json: bool = AS_JSON) -> None:
    """Show the clusters. Exits 1 when one is not running."""
    from mirrorlake.devtools.local import develop

    statuses = develop.status(directory)
    _show(context.obj, statuses, as_json)
    if not statuses or not all(cluster.running for cluster in statuses):
        raise typer.Exit(1)


def _show(shared: Context, statuses: "list[ClusterStatus]", as_json: bool) -> None:
    if as_json:
        shared.answer([vars(cluster) for cluster in statuses])
        return
    if not statuses:
        shared.say("there are no clusters here; `mirrorlake local up` starts two")
        return
    columns = ("cluster", "bootstrap servers", "cluster id", "running", "load", "logs")
    rows = (
        (
            *(cluster.name, cluster.bootstrap_servers, cluster.cluster_id),
            "yes" if cluster.running else "no",
            cluster.load_pid and f"process {cluster.load_pid}",
            cluster.log_directory,
        )
        for cluster in statuses
    )
    print_table(shared.out, *columns, rows=rows)


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
