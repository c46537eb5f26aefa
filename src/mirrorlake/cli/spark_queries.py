"""The command for consumers that are Structured Streaming queries: translate-checkpoint."""

import json
from pathlib import Path

import typer

from mirrorlake.cli import completion
from mirrorlake.cli.context import AS_JSON, Context


def translate_checkpoint(
    context: typer.Context,
    directory: Path = typer.Argument(
        ..., metavar="DIR", help="The query's checkpointLocation; it is only read."
    ),
    flow: str = completion.FLOW,
    reverse: bool = typer.Option(False, "--reverse", help="From the target back to the source."),
    as_json: bool = AS_JSON,
) -> None:
    """Print the startingOffsets with which a Structured Streaming query goes on at the other
    cluster, a line for each of its Kafka sources. Exits 1 when a partition could not be translated
    exactly."""
    from mirrorlake.failover.query_checkpoint import read_checkpoint, translate_query
    from mirrorlake.spark.query_files import starting_offsets

    shared: Context = context.obj
    known = shared.lake.internals
    resolved = known.topology.flow(flow)
    query = read_checkpoint(directory)  # before a session starts, if the lake needs one
    known.check_there()
    translated = translate_query(known.reader, known.topology, resolved, query, reverse)
    texts = {
        number: starting_offsets(positions) for number, positions in translated.positions.items()
    }
    sources = [
        {"source": number, "starting_offsets": json.loads(text)} for number, text in texts.items()
    ]
    problems = [vars(problem) for problem in translated.problems]
    document = {"flow": flow, "batch": query.batch, "sources": sources, "problems": problems}

    def show() -> None:
        for text in texts.values():
            typer.echo(text)
        for problem in translated.problems:
            shared.say(f"not exact: source {problem.source}: {problem.reason}")

    shared.end(document, as_json, show, not problems)
