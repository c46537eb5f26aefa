"""The document of a benchmark as tables for a terminal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

from mirrorlake.devtools.bench.report import MIRROR, MIRRORLAKE, TITLES


def tables(document: Mapping[str, Any]) -> list[Table]:
    """The tables of the race."""
    made = [
        _throughput_table(int(size), part)
        for which in ("throughput", "fan_out")
        for size, part in document.get(which, {}).items()
    ]
    parts: dict[str, Callable[[Any], Table]] = {
        "latency": _latency_table,
        "feel": feel_table,
        "scale": scale_table,
    }
    return made + [table(document[name]) for name, table in parts.items() if name in document]


def table_of(
    title: str, first: str, columns: Sequence[str], rows: Iterable[Sequence[str]] = ()
) -> Table:
    """A table of figures: the column `first` has labels, the others are right-aligned."""
    table = Table(title=title, title_justify="left")
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _throughput_table(size: int, part: Mapping[str, Any]) -> Table:
    targets = "" if part["targets"] == 1 else f", each to {part['targets']} targets"
    title = f"{part['records']:,} records of {size} B, lz4{targets}"
    columns = ("records/s", "from 1st out", "CPU s/M", "brokers", "ratio", "from 1st out")
    rates = ("records_per_second", "records_per_second_from_first_record")
    rows = []
    for name, run in part["contestants"].items():
        against = part["ratios"].get(f"{MIRRORLAKE}/{name}", {})
        figures = [f"{run[rate]:,.0f}" for rate in rates]
        costs = ("cpu_seconds_per_million", "brokers_cpu_seconds_per_million")
        figures += [f"{run[cost]:.1f}" for cost in costs]
        rows.append((TITLES[name], *figures, *(times(against.get(rate)) for rate in rates)))
    return table_of(title, "contestant", columns, rows)


def times(share: float | None) -> str:
    """A ratio; empty for None."""
    return "" if share is None else f"{share:.2f}x"


def _latency_table(part: Mapping[str, Any]) -> Table:
    pace = part["pace"]
    title = f"End to end, {pace['records_per_second']:,} records/s of {pace['record_bytes']} B"
    columns = ("p50 ms", "p95 ms", "p99 ms", "lost", "cores", "ratio p50 / p99")
    rows = []
    for name, run in part["contestants"].items():
        against = part["ratios"].get(f"{MIRRORLAKE}/{name}", {})
        shares = [times(against[key]) for key in ("p50", "p99") if against.get(key) is not None]
        figures = [f"{run[key]:,.0f}" for key in ("p50_ms", "p95_ms", "p99_ms", "lost")]
        rows.append((TITLES[name], *figures, f"{run['cores']:.2f}", " / ".join(shares)))
    return table_of(title, "contestant", columns, rows)


def feel_table(part: Mapping[str, Any]) -> Table:
    """What a person waits for, each beside a figure to compare it with."""
    ours, mirror = part[MIRRORLAKE], part[MIRROR]
    count = ("one count by Spark", ours["spark_count_seconds"])
    beside = {
        "run on a new lake: to the first records": "start_new_seconds",
        "run where it ran before": "start_again_seconds",
        "an idle flow, heartbeats included": "idle_cores",
    }
    measured = [
        (what, ours[name], TITLES[MIRROR], mirror[name], " cores" if "cores" in name else " s")
        for what, name in beside.items()
    ]
    measured += [
        (f"{command}, flow {when}", seconds, *count, " s")
        for when in ("running", "stopped")
        for command, seconds in ours[when].items()
    ]
    page = "dashboard: the page and its figures"
    measured.append((page, ours["dashboard_seconds"], *count, " s"))
    rows = [
        (what, f"{here:.2f}{unit}", "-" if there is None else f"{there:.2f}{unit}", other)
        for what, here, other, there, unit in measured
    ]
    columns = ("mirrorlake", "beside it", "what that is")
    return table_of("What a person waits for, cold processes", "what", columns, rows)


#: The goals for the cost of 2,000 partitions, and of 12,000 (`scale_table`).
SCALE_GOALS = {
    "plan": (4.0, 12.0),
    "new_seconds": (30.0, 150.0),
    "again_seconds": (10.0, 25.0),
    "topic_seconds": (5.0, 8.0),
    "idle_cores": (0.06, 0.2),
    "memory_mib": (900.0, 1_500.0),
    "p50_ms": (450.0, 600.0),
    "p99_ms": (900.0, 1_200.0),
    "cores": (0.45, 0.6),
    "status": (2.0, 4.0),
    "translate": (1.2, 1.5),
    "groups": (3.0, 8.0),
    "dashboard": (4.0, 6.0),
}


def scale_table(part: Mapping[str, Any]) -> Table:
    """The cost of thousands of partitions, beside the goals."""
    runs = part["contestants"]
    figures = {name: {**run, **run["commands"]} for name, run in runs.items()}
    count = part["topics"] * part["partitions"]
    rows = [
        (
            what.replace("_", " "),
            *(f"{run[what]:,.2f}" if what in run else "" for run in figures.values()),
            f"{few if count <= 2_000 else many:,.2f}",
        )
        for what, (few, many) in SCALE_GOALS.items()
    ]
    title = f"{count:,} partitions; {part['pace']['records_per_second']:,} records/s over few"
    return table_of(title, "what", (*(TITLES[name] for name in runs), "goal"), rows)
