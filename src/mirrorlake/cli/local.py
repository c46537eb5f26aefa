"""`mirrorlake local`: embedded Kafka clusters for development, and the topology file that goes with
them."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mirrorlake.cli.context import Context
from mirrorlake.terminal import plain_table

if TYPE_CHECKING:
    from mirrorlake.devtools.local.develop import ClusterStatus

AS_JSON = typer.Option(False, "--json", help="Print one JSON document.")
DIRECTORY = typer.Option(
    Path(".mirrorlake"), "--directory", help="Where brokers keep data and logs."
)


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(no_args_is_help=True, help="Embedded Kafka clusters for development.")
    for command in (up, down, status):
        group.command()(command)
    app.add_typer(group, name="local")


def up(
    context: typer.Context,
    name: list[str] = typer.Option(
        ["east", "west"], "--name", help="A cluster's alias; several times for several."
    ),
    brokers: int = typer.Option(1, "--brokers", min=1, help="Brokers of each cluster."),
    directory: Path = DIRECTORY,
    load: bool = typer.Option(
        False, "--load", help="Make topics orders and payments, and write into them for an hour."
    ),
    rate: int = typer.Option(
        100, "--rate", min=1, help="With --load: records a second, of both topics together."
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


def down(context: typer.Context, directory: Path = DIRECTORY, as_json: bool = AS_JSON) -> None:
    """Stop the clusters; their data stays."""
    from mirrorlake.devtools.local import develop

    _show(context.obj, develop.down(directory), as_json)


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
    table = plain_table("cluster", "bootstrap servers", "cluster id", "running", "load", "logs")
    for cluster in statuses:
        running = "yes" if cluster.running else "no"
        load = "-" if cluster.load_pid is None else f"process {cluster.load_pid}"
        table.add_row(
            cluster.name,
            cluster.bootstrap_servers,
            cluster.cluster_id,
            running,
            load,
            str(cluster.log_directory),
        )
    shared.out.print(table)
