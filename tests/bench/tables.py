"""The document of a checkout's benchmark as tables for a terminal."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rich.table import Table

from mirrorlake.devtools.bench.tables import table_of, times
from mirrorlake.devtools.bench.tables import tables as tables_of_the_race
from mirrorlake.library.capacity_figures import FIGURES
from tests.bench.soak import MEMORY


def tables(document: Mapping[str, Any]) -> list[Table]:
    """The tables of the race, and of what only a checkout measures."""
    parts: dict[str, Callable[[Any], Table]] = {
        "proof": _proof_table,
        "soak": _soak_table,
        "capacity": _capacity_table,
        "executors": _executors_table,
        "control": partial(_seconds_table, _CONTROL, _CONTROL_SECONDS),
        "groups": partial(_seconds_table, _GROUPS, _GROUPS_SECONDS),
        "stage": _stage_table,
        "starts": _starts_table,
    }
    own = [table(document[name]) for name, table in parts.items() if name in document]
    return [*tables_of_the_race(document), *own]


def _capacity_table(part: Mapping[str, Any]) -> Table:
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
    return table_of(title, "of", ("measured", "said", "unit"), rows)


def _executors_table(part: Mapping[str, Any]) -> Table:
    """How executors scale, and the driver's share."""
    runs = part["runs"]
    rows = [
        (
            str(run["executors"]),
            f"{run['records_per_second']:,}",
            times(run["records_per_second"] / runs[0]["records_per_second"]),
            *(f"{run[f'{who}_cores']:.2f}" for who in ("driver", "executors", "brokers")),
            f"{run['driver_share']:.0%}",
        )
        for run in runs
    ]
    title = f"Executors of {part['cores_of_one']} cores each, records of {part['record_bytes']} B"
    columns = ("records/s", "of one", "driver", "executors", "brokers", "driver's share")
    return table_of(title, "executors", columns, rows)


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
    return table_of(title, "records", ("verify s", "Spark s", "rate against Spark"), rows)


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
    return table_of(title, "after", columns, rows)


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
    return table_of(title, "start of a process", columns, rows)


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
    return table_of(title, "seconds", ("a day", "a year", "a year, maintained"), rows)


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
    return table_of(title.format(**part), "what", ("seconds",), rows)
