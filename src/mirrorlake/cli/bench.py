"""`mirrorlake bench`: the race against MirrorMaker 2, run by `mirrorlake.devtools.bench.run`."""

import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mirrorlake.cli.context import Context
from mirrorlake.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from mirrorlake.devtools.bench.arena import BenchOptions, Say
    from mirrorlake.devtools.bench.run import Keep

SMALL = 400
#: The parts of the race: `mirrorlake.devtools.bench.run.PARTS`.
RACE = ("throughput", "fan-out", "scale", "latency", "feel")
#: What only a checkout measures: `tests/bench`.
OF_A_CHECKOUT = ("proof", "soak", "capacity", "executors", "control")


class ManyPartitions(str, Enum):
    """How many partitions a cluster has that is measured as a large one."""

    thousands = "2000"
    most = "12000"


class BenchLake(str, Enum):
    """Where mirrorlake's lakes lie: `mirrorlake.devtools.bench.lakes.KINDS`."""

    folder = "folder"
    s3 = "s3"
    tables = "tables"
    catalog = "catalog"


class Bench:
    """What `mirrorlake bench` measures; that of a checkout measures more (`tests/bench`)."""

    def bench(
        self,
        context: typer.Context,
        *,
        records_1k: int = typer.Option(
            3_000_000, min=1_000, help="Backlog of records of 400 B or more."
        ),
        records_120: int = typer.Option(16_000_000, min=1_000, help="Backlog of smaller records."),
        record_bytes: str = typer.Option("1024,120", help="Record sizes to race with."),
        laps: int = typer.Option(
            1, min=1, help="How often to race; the median counts, and from 2 on warm brokers."
        ),
        only: str | None = typer.Option(
            None,
            metavar="|".join(RACE),
            autocompletion=lambda: [*RACE],
            help="Only this part; feel has latency too, and scale is never part of the whole. By "
            f"`make bench` in a checkout also {', '.join(OF_A_CHECKOUT)}.",
        ),
        lake: BenchLake = typer.Option(
            BenchLake.folder,
            help="Where mirrorlake's lakes lie: s3 is moto's server here, tables the same with the "
            "names of a catalog, catalog a Hive metastore; throughput, fan-out, latency and feel.",
        ),
        seconds: float = typer.Option(20.0, min=1.0, help="Seconds of latency that are measured."),
        warm_up: float | None = typer.Option(
            None,
            min=0.0,
            help="Seconds before that, not measured: 12, and 60 over many partitions.",
        ),
        partitions: ManyPartitions = typer.Option(
            ManyPartitions.thousands,
            help="How many partitions scale has; 12000 takes half an hour.",
        ),
        rate: int = typer.Option(1000, min=1, help="Records a second while latency is measured."),
        out: Path = typer.Option(
            Path("bench-results/bench.json"), help="The JSON file; scratch lives beside it."
        ),
        keep: bool = typer.Option(False, "--keep", help="Keep the scratch folder with all logs."),
        as_json: bool = typer.Option(
            False, "--json", help="Print the JSON document instead of the tables."
        ),
    ) -> None:
        """Race mirrorlake against MirrorMaker 2, on two embedded clusters of this machine."""
        from mirrorlake.devtools.bench.arena import BenchOptions
        from mirrorlake.devtools.bench.latency import Pace
        from mirrorlake.tracking.runs import record_bench

        shared: Context = context.obj
        parts = self.parts(only, lake)
        backlogs = {
            size: records_120 if size < SMALL else records_1k for size in _sizes(record_bytes)
        }
        if warm_up is None:
            # With many partitions brokers compile for a minute: measure as if they had run for days
            warm_up = 60.0 if "scale" in parts else 12.0
        options = BenchOptions(
            parts,
            backlogs,
            pace=Pace(rate, warm_up_seconds=warm_up, seconds=seconds),
            partitions=int(partitions.value),
            keep=keep,
            laps=laps,
            lake=lake.value,
        )

        def save(figures: dict[str, Any]) -> None:
            out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")

        document = self.run(options, out.absolute().parent, shared.say, save)
        record_bench(document, out.absolute().parent)
        if as_json:
            shared.answer(document)
            return
        for table in self.tables(document):
            shared.out.print(table)
        shared.say(f"all figures are in {out} ({document['seconds']:.0f} s)")

    def parts(self, only: str | None, _lake: BenchLake) -> set[str]:
        """The parts to measure: `only` this one, or all that take no long time. Raises
        InputError."""
        if only is None:
            return {*RACE} - {"scale"}
        if only in OF_A_CHECKOUT:
            raise InputError(
                f"only a checkout of mirrorlake measures {only}: type there make bench "
                f'ARGS="--only {only}"'
            )
        if only not in RACE:
            raise InputError(
                f"--only {only} is no part of the benchmark, which has {', '.join(RACE)}, and in a "
                f"checkout {', '.join(OF_A_CHECKOUT)}"
            )
        return {only, "latency"} if only == "feel" else {only}

    def run(
        self, options: "BenchOptions", parent: Path, say: "Say", keep: "Keep"
    ) -> dict[str, Any]:
        """Measure; return the document."""
        from mirrorlake.devtools.bench.run import PARTS, run_bench

        return run_bench(options, parent, say, keep, PARTS)

    def tables(self, document: Mapping[str, Any]) -> "list[Table]":
        """The document as tables for a terminal."""
        from mirrorlake.devtools.bench.tables import tables

        return tables(document)


bench = Bench().bench


def _sizes(text: str) -> list[int]:
    """The sizes that are named. Raises InputError, before a cluster is started for them."""
    from mirrorlake.devtools.bench.payload import LEAST_BYTES  # imports Kafka's client

    sizes = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if min(sizes) < LEAST_BYTES:
        raise InputError(
            f"--record-bytes {text} is not a list of numbers from {LEAST_BYTES} on, as 1024,120 is"
        )
    return sizes
