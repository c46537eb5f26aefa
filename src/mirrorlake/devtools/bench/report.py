"""Turns what was measured into figures, ratios, one JSON document and a table. Pure functions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mirrorlake.devtools.bench.latency import Arrivals
from mirrorlake.devtools.bench.measure import Race, Sample

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
    begin, before = beginning(race)
    end = samples[-1]
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


def beginning(race: Race) -> tuple[float, Sample]:
    """When the clock of a race starts, see `Throughput`, and the last sample before that."""
    samples = race.samples
    first_record = _first_record_at(samples)
    begin = first_record if race.first_read is None else min(first_record, race.first_read)
    before = [sample for sample in samples if sample.at <= begin]
    return begin, before[-1] if before else samples[0]


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
