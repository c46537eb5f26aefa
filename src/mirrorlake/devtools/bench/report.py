"""Turns what was measured into figures, ratios, one JSON document and a table. Pure functions."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from mirrorlake.devtools.bench.latency import Arrivals
from mirrorlake.devtools.bench.measure import Race, Sample
from mirrorlake.devtools.bench.soak import MEMORY

MIRRORLAKE, MIRROR, LANDING, NAIVE = (
    "mirrorlake",
    "mirrormaker2",
    "mirrormaker2_and_landing",
    "naive_pipeline",
)
COPIER = "plain_copier"
TITLES = {
    MIRRORLAKE: "mirrorlake",
    MIRROR: "MirrorMaker 2",
    LANDING: "MM2 + Spark landing",
    COPIER: "plain copier",
    NAIVE: "naive two queries",
}


@dataclass(frozen=True)
class Throughput:
    """Figures of one run. Two clocks: both end when all is done, target and stage.

    `records_per_second` starts at the first read of a contestant that stages, else at its first
    record at the target: staging is work, and much of it is done before a first record comes out.
    `records_per_second_from_first_record` starts at the first record at the target for all.
    `driver_mib` and `workers_mib` are the resident memory of mirrorlake's Python driver, and of
    Spark's Python workers, when a third of the records were there, and at most: it must not grow
    with them.
    """

    seconds: float
    records_per_second: float
    records_per_second_from_first_record: float
    cpu_seconds_per_million: float
    brokers_cpu_seconds_per_million: float
    seconds_from_start: float
    driver_mib: tuple[float, float] = (0.0, 0.0)
    workers_mib: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Latency:
    """End-to-end latency in ms, and the cores that it took; `lost` records did not arrive within a
    minute."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    records: int
    lost: int
    cores: float = 0.0


def throughput_of(race: Race) -> Throughput:
    """Give the figures of a race that came to its end."""
    samples = race.samples
    first_record = _first_record_at(samples)
    begin = first_record if race.first_read is None else min(first_record, race.first_read)
    end = samples[-1]
    before = max(
        (sample for sample in samples if sample.at <= begin),
        key=lambda one: one.at,
        default=samples[0],
    )
    millions = race.records / 1e6
    return Throughput(
        seconds=round(end.at - begin, 2),
        records_per_second=round(race.records / (end.at - begin), 1),
        records_per_second_from_first_record=round(race.records / (end.at - first_record), 1),
        cpu_seconds_per_million=round((end.cpu - before.cpu) / millions, 2),
        brokers_cpu_seconds_per_million=round((end.brokers_cpu - before.brokers_cpu) / millions, 2),
        seconds_from_start=round(end.at - samples[0].at, 2),
        driver_mib=_mib(race, [one.driver_mib for one in samples]),
        workers_mib=_mib(race, [one.workers_mib for one in samples]),
    )


def _mib(race: Race, sizes: Sequence[float]) -> tuple[float, float]:
    """The memory of a process when a third of the records were at the target, and at most."""
    pairs = zip(race.samples, sizes, strict=True)
    third = next((size for sample, size in pairs if sample.written >= race.records / 3), 0.0)
    return round(third, 1), round(max(sizes), 1)


def _first_record_at(samples: Sequence[Sample]) -> float:
    """Give the middle between the last sample without a record at the target and the first with
    one."""
    first = next(number for number, sample in enumerate(samples) if sample.written > 0)
    return (samples[max(0, first - 1)].at + samples[first].at) / 2


def percentile(values: Sequence[float], share: float) -> float:
    """Give the smallest value that at least `share` of all values do not exceed; nan when there are
    none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def latency_of(arrivals: Arrivals) -> Latency:
    """Give the percentiles of a latency run."""
    values = arrivals.latencies_ms
    p50, p95, p99, top = (round(percentile(values, share), 1) for share in (0.5, 0.95, 0.99, 1.0))
    return Latency(
        p50,
        p95,
        p99,
        top,
        records=len(values),
        lost=arrivals.sent - len(values),
        cores=arrivals.cores,
    )


def ratio(ours: float, theirs: float) -> float | None:
    """Give ours/theirs; None where that is no number."""
    if not theirs or math.isnan(ours) or math.isnan(theirs):
        return None
    return round(ours / theirs, 3)


def throughput_document(laps: Mapping[str, Sequence[Throughput]]) -> dict[str, Any]:
    """Give each contestant's median lap over one backlog, mirrorlake's ratios of these to the
    others, by both clocks, and the records a second of all laps."""
    runs = {name: _median(runs_of_laps) for name, runs_of_laps in laps.items()}
    ours = runs.get(MIRRORLAKE)
    ratios = {
        f"{MIRRORLAKE}/{name}": {
            "records_per_second": ratio(ours.records_per_second, run.records_per_second),
            "records_per_second_from_first_record": ratio(
                ours.records_per_second_from_first_record, run.records_per_second_from_first_record
            ),
            "cpu": ratio(ours.cpu_seconds_per_million, run.cpu_seconds_per_million),
        }
        for name, run in runs.items()
        if ours is not None and name != MIRRORLAKE
    }
    return {
        "contestants": {name: asdict(run) for name, run in runs.items()},
        "ratios": ratios,
        "laps": {
            name: [run.records_per_second for run in runs_of_laps]
            for name, runs_of_laps in laps.items()
        },
    }


def _median(laps: Sequence[Throughput]) -> Throughput:
    """The lap in the middle, of two the slower one."""
    return sorted(laps, key=lambda one: one.records_per_second)[(len(laps) - 1) // 2]


def latency_document(runs: Mapping[str, Latency]) -> dict[str, Any]:
    """Give the latency runs and mirrorlake's ratios to the others."""
    ours = runs.get(MIRRORLAKE)
    ratios = {
        f"{MIRRORLAKE}/{name}": {
            "p50": ratio(ours.p50_ms, run.p50_ms),
            "p95": ratio(ours.p95_ms, run.p95_ms),
            "p99": ratio(ours.p99_ms, run.p99_ms),
        }
        for name, run in runs.items()
        if ours is not None and name != MIRRORLAKE
    }
    return {"contestants": {name: asdict(run) for name, run in runs.items()}, "ratios": ratios}


def tables(document: Mapping[str, Any]) -> list[Table]:
    """Give the tables of a whole bench document, for a terminal."""
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
        "control": _control_table,
        "groups": _groups_table,
        "stage": _stage_table,
        "starts": _starts_table,
    }
    return made + [table(document[name]) for name, table in parts.items() if name in document]


def _table(
    title: str, first: str, columns: Sequence[str], rows: Iterable[Sequence[str]] = ()
) -> Table:
    """A table of figures: the column `first` says of what, the others stand to the right."""
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
    """What a person waits for, each beside what there is to hold it against."""
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
        (what, f"{here:.2f}{unit}", f"{there:.2f}{unit}", other)
        for what, here, other, there, unit in measured
    ]
    columns = ("mirrorlake", "beside it", "what that is")
    return _table("What a person waits for, cold processes", "what", columns, rows)


def _control_table(part: Mapping[str, Any]) -> Table:
    return _seconds_table(
        f"Control of {part['topics']:,} topics with {part['partitions']:,} partitions",
        "what",
        {
            "make all mirrors with their configs": part["create_seconds"],
            "refresh of topics, nothing changed": part["refresh_topics_seconds"],
            "refresh of configs, nothing changed": part["refresh_configs_seconds"],
        },
    )


def _groups_table(part: Mapping[str, Any]) -> Table:
    return _seconds_table(
        f"Checkpoints of {part['groups']:,} groups over {part['topics']:,} topics, "
        f"{part['positions']:,} positions",
        "round",
        {
            "the first of a process": part["first_round_seconds"],
            "all groups have moved": part["all_moved_seconds"],
            "every tenth group has moved": part["tenth_moved_seconds"],
            "nothing has moved": part["nothing_moved_seconds"],
        },
    )


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


def _seconds_table(title: str, first: str, seconds: Mapping[str, float]) -> Table:
    """What took how long, a row each; `first` is the header of what."""
    rows = [(what, f"{taken:.2f}") for what, taken in seconds.items()]
    return _table(title, first, ("seconds",), rows)
