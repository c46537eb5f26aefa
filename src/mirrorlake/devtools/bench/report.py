"""Turns measurements into figures, ratios and one JSON document. Pure functions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

from mirrorlake.devtools.bench.latency import Latency
from mirrorlake.devtools.bench.measure import Race, Sample

MIRRORLAKE, MIRROR, LANDING = "mirrorlake", "mirrormaker2", "mirrormaker2_and_landing"
COPIER = "plain_copier"
FROM_FIRST_RECORD = "records_per_second_from_first_record"
TITLES = {
    MIRRORLAKE: "mirrorlake",
    MIRROR: "MirrorMaker 2",
    LANDING: "MM2 + Spark landing",
    COPIER: "plain copier",
}


@dataclass(frozen=True)
class Throughput:
    """Figures of one run, by two clocks; both end when target and stage have all records.

    `records_per_second` starts with the process, as a person waits for it.
    `records_per_second_from_first_record` starts at the first record at the target, which may be
    one of a few that went ahead. CPU counts from the first read on, or from the first record.
    `driver_mib` and `workers_mib` are the resident memory of the Python driver and of Spark's
    Python workers after a third of the records, and at most: it must not grow with the records.
    """

    seconds: float
    records_per_second: float
    records_per_second_from_first_record: float
    cpu_seconds_per_million: float
    brokers_cpu_seconds_per_million: float
    driver_mib: tuple[float, float] = (0.0, 0.0)
    workers_mib: tuple[float, float] = (0.0, 0.0)


def throughput_of(race: Race) -> Throughput:
    """Return the figures of a finished race."""
    samples = race.samples
    first_record = _first_record_at(samples)
    _, before = beginning(race)
    end = samples[-1]
    seconds, millions = end.at - samples[0].at, race.records / 1e6
    return Throughput(
        seconds=round(seconds, 2),
        records_per_second=round(race.records / seconds, 1),
        records_per_second_from_first_record=round(race.records / (end.at - first_record), 1),
        cpu_seconds_per_million=round((end.cpu - before.cpu) / millions, 2),
        brokers_cpu_seconds_per_million=round((end.brokers_cpu - before.brokers_cpu) / millions, 2),
        driver_mib=_mib(race, [one.driver_mib for one in samples]),
        workers_mib=_mib(race, [one.workers_mib for one in samples]),
    )


def beginning(race: Race) -> tuple[float, Sample]:
    """When a contestant first reads, or first writes, and the last sample before that."""
    samples = race.samples
    first_record = _first_record_at(samples)
    begin = first_record if race.first_read is None else min(first_record, race.first_read)
    before = [sample for sample in samples if sample.at <= begin]
    return begin, before[-1] if before else samples[0]


def _mib(race: Race, sizes: Sequence[float]) -> tuple[float, float]:
    """The memory of a process after a third of the records, and its maximum."""
    pairs = zip(race.samples, sizes, strict=True)
    third = next((size for sample, size in pairs if sample.written >= race.records / 3), 0.0)
    return round(third, 1), round(max(sizes), 1)


def _first_record_at(samples: Sequence[Sample]) -> float:
    """The middle between the last sample without a record at the target and the first with one."""
    first = next(number for number, sample in enumerate(samples) if sample.written > 0)
    return (samples[max(0, first - 1)].at + samples[first].at) / 2


def ratio(ours: float, theirs: float) -> float | None:
    """Return ours/theirs; None if that is not a number."""
    if not theirs or math.isnan(ours) or math.isnan(theirs):
        return None
    return round(ours / theirs, 3)


def throughput_document(laps: Mapping[str, Sequence[Throughput]]) -> dict[str, Any]:
    """Each contestant's median lap, our ratios by both clocks, and all laps' records a second."""
    runs = {  # the slower one of two laps
        name: sorted(of_laps, key=attrgetter("records_per_second"))[(len(of_laps) - 1) // 2]
        for name, of_laps in laps.items()
    }
    figures = {name: name for name in ("records_per_second", FROM_FIRST_RECORD)}
    return {
        **_compared(runs, {**figures, "cpu": "cpu_seconds_per_million"}),
        "laps": {
            name: [run.records_per_second for run in of_laps] for name, of_laps in laps.items()
        },
    }


def _compared(
    runs: Mapping[str, Throughput | Latency], figures: Mapping[str, str]
) -> dict[str, Any]:
    """The runs, and mirrorlake's ratios to the others of some figures."""
    all_runs = {name: asdict(run) for name, run in runs.items()}
    ours = all_runs.get(MIRRORLAKE)
    ratios = {
        f"{MIRRORLAKE}/{name}": {
            label: ratio(ours[figure], run[figure]) for label, figure in figures.items()
        }
        for name, run in all_runs.items()
        if ours is not None and name != MIRRORLAKE
    }
    return {"contestants": all_runs, "ratios": ratios}


def latency_document(runs: Mapping[str, Latency]) -> dict[str, Any]:
    """Return the latency runs and mirrorlake's ratios to the others."""
    return _compared(runs, {name: f"{name}_ms" for name in ("p50", "p95", "p99")})
