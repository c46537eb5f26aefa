"""`make bench`: `mirrorlake bench`, which also measures what only developers ask (`parts.py`)."""

import sys
from collections.abc import Mapping
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


class Checkout(Bench):
    """What a checkout measures: the race, and `OF_A_CHECKOUT`."""

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
        from tests.bench.parts import AFTER, PARTS

        return run_bench(options, parent, say, keep, PARTS, after=AFTER)

    def tables(self, document: Mapping[str, Any]) -> "list[Table]":
        """The document as tables for a terminal."""
        from tests.bench.tables import tables

        return tables(document)


def main() -> None:
    """Run `mirrorlake bench` with the options of this process."""
    app.command("bench")(Checkout().bench)
    sys.argv.insert(1, "bench")
    run_command()


if __name__ == "__main__":
    main()
