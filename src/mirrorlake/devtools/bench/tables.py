"""The document of a benchmark as tables for a terminal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rich.table import Table

from mirrorlake.devtools.bench.report import MIRROR, MIRRORLAKE, TITLES
from mirrorlake.devtools.bench.soak import MEMORY
from mirrorlake.library.capacity_figures import FIGURES


def tables(document: Mapping[str, Any]) -> list[Table]:
    """Return the tables of a whole bench document."""
    made = [
        _throughput_table(int(size), part)
        for which in ("throughput", "fan_out")
        for size, part in document.get(which, {}).items()
    ]
    parts: dict[str, Callable[[Any], Table]] = {
        "proof": _proof_table,
        "soak": _soak_table,
        "latency": _latency_table,
        "feel": feel_table,
        "scale": scale_table,
        "capacity": capacity_table,
        "executors": executors_table,
        "control": partial(_seconds_table, _CONTROL, _CONTROL_SECONDS),
        "groups": partial(_seconds_table, _GROUPS, _GROUPS_SECONDS),
        "stage": _stage_table,
        "starts": _starts_table,
    }
    return made + [table(document[name]) for name, table in parts.items() if name in document]


def _table(
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
        rows.append((TITLES[name], *figures, *(_times(against.get(rate)) for rate in rates)))
    return _table(title, "contestant", columns, rows)


def _times(share: float | None) -> str:
    return "" if share is None else f"{share:.2f}x"


def _latency_table(part: Mapping[str, Any]) -> Table:
    pace = part["pace"]
    title = f"End to end, {pace['records_per_second']:,} records/s of {pace['record_bytes']} B"
    columns = ("p50 ms", "p95 ms", "p99 ms", "lost", "cores", "ratio p50 / p99")
    rows = []
    for name, run in part["contestants"].items():
        against = part["ratios"].get(f"{MIRRORLAKE}/{name}", {})
        shares = [_times(against[key]) for key in ("p50", "p99") if against.get(key) is not None]
        figures = [f"{run[key]:,.0f}" for key in ("p50_ms", "p95_ms", "p99_ms", "lost")]
        rows.append((TITLES[name], *figures, f"{run['cores']:.2f}", " / ".join(shares)))
    return _table(title, "contestant", columns, rows)


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
    return _table("What a person waits for, cold processes", "what", columns, rows)


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
    return _table(title, "what", (*(TITLES[name] for name in runs), "goal"), rows)


def capacity_table(part: Mapping[str, Any]) -> Table:
    """The measured figures, beside those behind capacity estimates."""
    rows = [
        (
            figure.what,
            f"{part['figures'][name]:,.3g}",
            f"{figure.values['folder']:,.3g}",
            figure.unit,
        )
        for name, figure in FIGURES.items()
    ]
    title = "What flows take, and what `mirrorlake plan` says so by (library/capacity_figures.py)"
    return _table(title, "of", ("measured", "said", "unit"), rows)


def executors_table(part: Mapping[str, Any]) -> Table:
    """How executors scale, and the driver's share."""
    runs = part["runs"]
    rows = [
        (
            str(run["executors"]),
            f"{run['records_per_second']:,}",
            _times(run["records_per_second"] / runs[0]["records_per_second"]),
            *(f"{run[f'{who}_cores']:.2f}" for who in ("driver", "executors", "brokers")),
            f"{run['driver_share']:.0%}",
        )
        for run in runs
    ]
    title = f"Executors of {part['cores_of_one']} cores each, records of {part['record_bytes']} B"
    columns = ("records/s", "of one", "driver", "executors", "brokers", "driver's share")
    return _table(title, "executors", columns, rows)


def _proof_table(part: Mapping[str, Mapping[str, Any]]) -> Table:
    title = "verify, and a Spark job that only reads source, stage and target: cold processes"
    rows = [
        (
            f"{one['records']:,} of {one['record_bytes']:,} B",
            *(f"{one[name]:.1f}" for name in ("verify_seconds", "spark_seconds")),
            f"{one['ratio']:.2f}x",
        )
        for one in part.values()
    ]
    return _table(title, "records", ("verify s", "Spark s", "rate against Spark"), rows)


def _soak_table(part: Mapping[str, Any]) -> Table:
    title = (
        f"{part['records']:,} records at full rate: memory of mirrorlake's processes, files "
        "that they mapped left out"
    )
    rows = []
    for one in part["stretches"]:
        figures = [f"{one['records_per_second']:,}", f"{one['cpu_seconds_per_million']:.2f}"]
        rows.append((f"{one['minutes']:.0f} min", *figures, *(f"{one[name]:,}" for name in MEMORY)))
    rows.append(("last against second", "", "", *(f"{part['growth'][name]:+,}" for name in MEMORY)))
    columns = ("records/s", "CPU s/M", "driver MiB", "JVM MiB", "workers MiB")
    return _table(title, "after", columns, rows)


def _stage_table(part: Mapping[str, Any]) -> Table:
    title = f"Index of a stage of {part['files']:,} files with {part['partitions']:,} partitions"
    whole = ("mib", "peak_mib", "plan_ms", "plan_cpu_ms", "plan_max_ms")
    rows = [
        (
            start,
            *(f"{part[name][key]:.2f}" for key in ("build_seconds", "build_cpu_seconds")),
            *(f"{part[name][key]:,.0f}" for key in whole),
        )
        for name, start in (("cold", "without a copy of the index"), ("restart", "with one"))
    ]
    columns = ("build s", "CPU s", "MiB", "peak MiB", "next batch ms", "its CPU ms", "at most ms")
    return _table(title, "start of a process", columns, rows)


def _starts_table(part: Mapping[str, Any]) -> Table:
    title = (
        f"What a start asks of a lake after a day, and a year ({part['runs']:,} runs, "
        f"{part['commits']:,} commits)"
    )
    lakes = [part[lake] for lake in ("day", "year", "year_maintained")]
    rows = [(what, *(f"{lake[what]:.2f}" for lake in lakes)) for what in part["day"]]
    rows.append(("all", *(f"{sum(lake.values()):.2f}" for lake in lakes)))
    ratios = (f"{part['ratio']:.2f}x", f"{part['ratio_maintained']:.2f}x")
    rows.append(("against a day", "", *ratios))
    return _table(title, "seconds", ("a day", "a year", "a year, maintained"), rows)


#: Titles of tables of seconds, and the label of each figure of a part.
_CONTROL = "Control of {topics:,} topics with {partitions:,} partitions"
_CONTROL_SECONDS = {
    "create_seconds": "make all mirrors with their configs",
    "refresh_topics_seconds": "refresh of topics, nothing changed",
    "refresh_configs_seconds": "refresh of configs, nothing changed",
}
_GROUPS = "Checkpoints of {groups:,} groups over {topics:,} topics, {positions:,} positions"
_GROUPS_SECONDS = {
    "first_round_seconds": "the first round of a process",
    "all_moved_seconds": "all groups have moved",
    "tenth_moved_seconds": "every tenth group has moved",
    "nothing_moved_seconds": "nothing has moved",
}


def _seconds_table(title: str, names: Mapping[str, str], part: Mapping[str, Any]) -> Table:
    rows = [(what, f"{part[name]:.2f}") for name, what in names.items()]
    return _table(title.format(**part), "what", ("seconds",), rows)
