"""`make bench`: `mirrorlake bench`, which also measures what only developers ask (`parts.py`)."""

import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirrorlake.cli.bench import OF_A_CHECKOUT, Bench, BenchLake
from mirrorlake.cli.main import app
from mirrorlake.cli.main import main as run_command
from mirrorlake.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from mirrorlake.devtools.bench.arena import BenchOptions, Say
    from mirrorlake.devtools.bench.run import Keep

#: Parts that a whole benchmark has: they take no long time, and no root.
IN_THE_WHOLE = {"proof", "control"}
#: The least time of a soak.
LEAST_MINUTES = 2.0


class Checkout(Bench):
    """What a checkout measures: the race, and `OF_A_CHECKOUT`; the soak for an hour, or so many
    minutes."""

    def __init__(self, minutes: float | None = None) -> None:
        self._soak = {} if minutes is None else {"minutes": minutes}

    def parts(self, only: str | None, lake: BenchLake) -> set[str]:
        """The parts to measure. Those of a checkout need lakes in folders: they generate tables, or
        read them by Spark. Raises InputError."""
        if only in OF_A_CHECKOUT:
            if lake is not BenchLake.folder:
                raise InputError(f"--only {only} measures lakes in folders: leave --lake out")
            return {only}
        whole = only is None and lake is BenchLake.folder
        return super().parts(only, lake) | (IN_THE_WHOLE if whole else set())

    def run(
        self, options: "BenchOptions", parent: Path, say: "Say", keep: "Keep"
    ) -> dict[str, Any]:
        """Measure; return the document."""
        from mirrorlake.devtools.bench.run import run_bench
        from tests.bench.parts import AFTER, PARTS, watch_memory

        parts = {**PARTS, "soak": partial(watch_memory, **self._soak)}
        return run_bench(options, parent, say, keep, parts, after=AFTER)

    def tables(self, document: Mapping[str, Any]) -> "list[Table]":
        """The document as tables for a terminal."""
        from tests.bench.tables import tables

        return tables(document)


def main() -> None:
    """Run `mirrorlake bench` with the options of this process, and `--minutes` of the soak."""
    own = ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument("--minutes", type=float)
    given, words = own.parse_known_args()
    if given.minutes is not None and given.minutes < LEAST_MINUTES:
        own.error(f"--minutes has to be {LEAST_MINUTES:.0f} or more")
    app.command("bench")(Checkout(given.minutes).bench)
    sys.argv[1:] = ["bench", *words]
    run_command()


if __name__ == "__main__":
    main()
