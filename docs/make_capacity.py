"""Writes the tables of capacity.md from the figures that `mirrorlake plan` goes by: `make tables`.

What is between `<!-- NAME -->` and `<!-- end -->` is replaced; the rest of the page is prose.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from mirrorlake.library.capacity import Load, Needs, cores, needs
from mirrorlake.library.capacity_figures import FIGURES, KINDS

PAGE = Path(__file__).with_name("capacity.md")

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


def _cell(found: Needs) -> str:
    return f"{cores(found.cores)}, {found.memory_gib:g} GiB"


TABLES: Mapping[str, Callable[[], str]] = {
    "examples": examples,
    "figures": figures,
    "estimates": estimates,
}

if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
