"""Writes the tables of capacity.md from the figures that `mirrorlake plan` goes by, and from what
was measured of executors: `make tables`.

What is between `<!-- NAME -->` and `<!-- end -->` is replaced; the rest of the page is prose.
`python docs/make_capacity.py bench-results/bench.json` takes what `bench --only executors` has
measured into executors.json first.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mirrorlake.library.capacity import Load, Needs, cores, needs
from mirrorlake.library.capacity_figures import FIGURES, KINDS

PAGE = Path(__file__).with_name("capacity.md")
MEASURED = Path(__file__).with_name("executors.json")
#: Of as many times the rate of one executor: what counts as a straight line.
STRAIGHT = 0.9

#: What the table of examples shows: words for a load, and the load.
EXAMPLES: Mapping[str, Load] = {
    "at rest most of the time: 10 records/s, 20 partitions": Load(
        partitions=20, records_per_second=10, bytes_per_second=10_240
    ),
    "1,000 records/s of 1 KB, 100 partitions": Load(
        partitions=100, records_per_second=1_000, bytes_per_second=1_024_000
    ),
    "10,000 records/s of 1 KB, 1,000 partitions, 1,000 positions of groups": Load(
        partitions=1_000, positions=1_000, records_per_second=10_000, bytes_per_second=10_240_000
    ),
    "50,000 records/s of 1 KB, 2,000 partitions, 5,000 positions of groups": Load(
        partitions=2_000, positions=5_000, records_per_second=50_000, bytes_per_second=51_200_000
    ),
    "the same to three targets": Load(
        flows=3,
        partitions=6_000,
        positions=15_000,
        records_per_second=150_000,
        bytes_per_second=153_600_000,
    ),
}


def page(text: str) -> str:
    """The page with its tables made anew. Raises ValueError where one has no place there."""
    for name, table in TABLES.items():
        before, begin, rest = text.partition(f"<!-- {name} -->")
        _, end, behind = rest.partition("<!-- end -->")
        if not end:
            raise ValueError(f"capacity.md has no place for the table {name}")
        text = f"{before}{begin}\n\n{table()}\n\n{end}{behind}"
    return text


def figures() -> str:
    """Every figure, by kind of lake; what was not measured has a tilde."""
    rows = ["| | unit | folder | store | catalog | from |", "|---|---|---|---|---|---|"]
    for figure in FIGURES.values():
        values = [
            f"{'~' if kind in figure.estimated else ''}{figure.values[kind]:g}" for kind in KINDS
        ]
        rows.append(f"| {figure.what} | {figure.unit} | {' | '.join(values)} | {figure.source} |")
    return "\n".join(rows)


def estimates() -> str:
    """What was not measured, and by what it is as it is."""
    rows = ["| | folder | store | catalog |", "|---|---|---|---|"]
    for figure in FIGURES.values():
        if figure.estimated:
            why = [figure.estimated.get(kind, "measured") for kind in KINDS]
            rows.append(f"| {figure.what} | {' | '.join(why)} |")
    return "\n".join(rows)


def examples() -> str:
    """What some loads need."""
    rows = ["| | folder | store | catalog |", "|---|---|---|---|"]
    for words, load in EXAMPLES.items():
        cells = [_cell(needs(load, kind)) for kind in KINDS]
        rows.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(rows)


def executors() -> str:
    """What so many executors take, and where more of them bring less."""
    part = json.loads(MEASURED.read_text(encoding="utf-8"))
    first, runs = part["runs"][0], part["runs"]
    rows = [
        "| executors | records/s | of one's | driver | its share of CPU | executors | brokers |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        driver, own, brokers = (run[f"{who}_cores"] for who in ("driver", "executors", "brokers"))
        rate = run["records_per_second"]
        times = rate / first["records_per_second"]
        rows.append(
            f"| {run['executors']} | {rate:,} | {times:.1f}x | {driver:.2f} cores | "
            f"{run['driver_share']:.0%} | {own:.2f} cores | {brokers:.2f} cores |"
        )
    measured = (
        f"Measured {part['at'][:10]} on {part['machine']['cores']} cores, with a load of "
        f"{part['machine']['load_average_before']} on them before: {first['records']:,} records of "
        f"{part['record_bytes']} B for each executor, {part['partitions']} partitions."
    )
    return "\n".join([*rows, "", f"{measured} {bend(runs, part['cores_of_one'])}"])


def bend(runs: Sequence[Mapping[str, Any]], cores_of_one: float) -> str:
    """From how many executors on each of them brings less than the first one, and whether they were
    busy there with all that they had."""
    one = runs[0]["records_per_second"]
    shares = [run["records_per_second"] / (one * run["executors"]) for run in runs]
    bent = [at for at, share in enumerate(shares) if share < STRAIGHT]
    at = bent[0] if bent else len(runs) - 1
    count = runs[at]["executors"]
    used = runs[at]["executors_cores"] / (count * cores_of_one)
    return (
        f"It {'bends at' if bent else 'does not bend up to'} {count} executors: they bring "
        f"{shares[at]:.0%} of {count} times the rate of one, and are busy for {used:.0%} of the "
        "time that they have."
    )


def keep(document: Mapping[str, Any]) -> None:
    """Keep what a benchmark has measured of executors. Raises KeyError where it has not."""
    kept = {"at": document["at"], "machine": document["machine"], **document["executors"]}
    MEASURED.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def _cell(found: Needs) -> str:
    return f"{cores(found.cores)}, {found.memory_gib:g} GiB"


TABLES: Mapping[str, Callable[[], str]] = {
    "examples": examples,
    "figures": figures,
    "estimates": estimates,
    "executors": executors,
}

if __name__ == "__main__":
    for argument in sys.argv[1:]:
        keep(json.loads(Path(argument).read_text(encoding="utf-8")))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
