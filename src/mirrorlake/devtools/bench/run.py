"""Runs the benchmark: two embedded clusters and the same data for each contestant in turn."""

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

from mirrorlake.devtools.bench.arena import (
    BROKERS,
    Arena,
    BenchOptions,
    Say,
    Start,
    contestant,
    delete_topic,
)
from mirrorlake.devtools.bench.contestants import (
    start_mirrorlake,
    start_mirrormaker,
    start_mirrormaker_and_landing,
    start_plain_copier,
)
from mirrorlake.devtools.bench.feel import measure_feel
from mirrorlake.devtools.bench.lakes import lakes_of
from mirrorlake.devtools.bench.latency import measure_latency
from mirrorlake.devtools.bench.measure import watch
from mirrorlake.devtools.bench.payload import PARTITIONS, load_topic
from mirrorlake.devtools.bench.report import (
    COPIER,
    LANDING,
    MIRROR,
    MIRRORLAKE,
    TITLES,
    Throughput,
    latency_document,
    throughput_document,
    throughput_of,
)
from mirrorlake.devtools.bench.scale import Size, measure_scale
from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.spark.jars import (
    DELTA_VERSION,
    KAFKA_VERSION,
    connector_jars,
    mirror_jars,
    spark_jars,
)
from mirrorlake.spark.java import find_java, java_version

Keep = Callable[[dict[str, Any]], None]
#: A measurement between two clusters; it returns parts of the document.
Measure = Callable[[Arena, BenchOptions], dict[str, Any]]
#: A measurement without clusters, in a folder; it returns parts of the document.
MeasureAlone = Callable[[Path, Say], dict[str, Any]]
#: The time limit of a contestant, plus a second for every 5,000 records.
_RACE_SECONDS = 180.0
#: A broker with the usual heap leads up to this many.
MANY_PARTITIONS = 2_000
#: A broker that creates more, sharing cores with its controller, may be silent for some seconds and
#: be taken for dead; Kafka's default is 9 s.
_SLOW_BROKERS = {"broker.session.timeout.ms": "30000"}


#: The copier comes first: it shows what the machine can do, and warms both brokers for the others.
_RACERS: Mapping[str, Start] = {
    COPIER: start_plain_copier,
    MIRRORLAKE: start_mirrorlake,
    MIRROR: start_mirrormaker,
    LANDING: start_mirrormaker_and_landing,
}
_BOTH: Mapping[str, Start] = {MIRRORLAKE: start_mirrorlake, MIRROR: start_mirrormaker}


def run_bench(
    options: BenchOptions,
    parent: Path,
    say: Say,
    keep: Keep,
    parts: Mapping[str, Measure],
    *,
    after: Sequence[tuple[str, MeasureAlone]] = (),
) -> dict[str, Any]:
    """Measure; return a JSON document. Works in a new folder of `parent`, left if anything fails.

    Measures those of `parts` that the options name, in order, and then, without clusters, those of
    `after`. `keep` gets the document so far after each, so that one that fails loses no figures.
    """
    started = time.monotonic()
    for resolve in (spark_jars, connector_jars, mirror_jars):
        resolve(say)
    parent.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="work-", dir=parent.absolute()))
    document: dict[str, Any] = {
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(),
        "lake": options.lake,
    }
    say(f"starting two clusters in {directory}")
    many = "scale" in options.parts and options.partitions > MANY_PARTITIONS
    clusters = start_clusters(
        ["east", "west"],
        directory / "clusters",
        properties={**BROKERS, **_SLOW_BROKERS} if many else BROKERS,
        heap="2g" if many else "512m",
    )
    try:
        with lakes_of(options.lake, directory / "lakes") as lake_of:
            arena = Arena(clusters["east"], clusters["west"], directory, say, lake_of)
            for part, measure in parts.items():
                if part in options.parts:
                    document |= measure(arena, options)
                    keep(document)
    finally:
        stop_clusters(clusters)
    for part, measure_alone in after:
        if part in options.parts:
            document |= measure_alone(directory, say)
            keep(document)
    if not options.keep:
        shutil.rmtree(directory)
    document["seconds"] = round(time.monotonic() - started, 1)
    keep(document)
    return document


def machine() -> dict[str, Any]:
    """Describe the machine and the versions."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ("mirrorlake", "pyspark", "confluent-kafka")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
        "system": platform.platform(),
        "load_average_before": round(os.getloadavg()[0], 2),
        "java": java_version(find_java()),
        "python": platform.python_version(),
        "kafka": KAFKA_VERSION,
        **{name: version(name) for name in packages},
        "delta-spark": DELTA_VERSION,
    }


def _race(
    arena: Arena,
    size: int,
    records: int,
    racers: Mapping[str, Start],
    *,
    laps: int,
    more: Sequence[EmbeddedCluster] = (),
) -> dict[str, Any]:
    """Race to the arena's target, and `more`. From the second lap on, none warms the brokers."""
    topic = f"bench-{size}"
    arena.say(f"{size} B: writing {records:,} records to {topic}")
    load_topic(arena.source, topic, size, records, arena.directory)
    brokers = [*arena.brokers, *(pid for cluster in more for pid in cluster.pids)]
    targets = [
        arena.target,
        *(ClusterAdmin("west", {"bootstrap.servers": one.bootstrap_servers}) for one in more),
    ]
    runs: dict[str, list[Throughput]] = {name: [] for name in racers}
    for lap, (name, start) in product(range(laps), racers.items()):
        job = arena.job(name, f"{size}-to-{len(targets)}-{lap}", topic, tuned=True)
        job = replace(job, more_targets=tuple(one.bootstrap_servers for one in more))
        with contestant(arena, job, start) as running:
            race = watch(
                running,
                job,
                targets,
                brokers,
                records=records,
                timeout=_RACE_SECONDS + len(targets) * records / 5000,
            )
        for cluster in more:
            delete_topic(cluster, job.target_topic)
        runs[name].append(throughput_of(race))
        arena.say(f"{size} B: {TITLES[name]}: {runs[name][-1].records_per_second:,.0f} records/s")
    delete_topic(arena.east, topic)
    return {"records": records, "targets": len(targets), **throughput_document(runs)}


def _throughput(arena: Arena, options: BenchOptions) -> dict[str, Any]:
    return {
        "throughput": {
            str(size): _race(arena, size, records, _RACERS, laps=options.laps)
            for size, records in options.backlogs.items()
        }
    }


def _fan_out(arena: Arena, options: BenchOptions) -> dict[str, Any]:
    """Race from one source to three targets: each gets a third of the records."""
    with arena.more("west2", "west3") as more:
        return {
            "fan_out": {
                str(size): _race(arena, size, records // 3, _BOTH, laps=options.laps, more=more)
                for size, records in options.backlogs.items()
            }
        }


def _latencies(arena: Arena, options: BenchOptions) -> dict[str, Any]:
    pace, runs = options.pace, {}
    for name, start in _BOTH.items():
        topic = f"bench-latency-{name}"
        arena.source.create_topics([TopicInfo(topic, PARTITIONS, 1)])
        job = arena.job(name, "latency", topic, tuned=False)
        arena.say(
            f"latency: {TITLES[name]} at {pace.records_per_second:,} records/s for "
            f"{pace.seconds:.0f} s"
        )
        with contestant(arena, job, start) as running:
            runs[name] = measure_latency(running, job, arena.target, pace)
        arena.say(
            f"latency: {TITLES[name]}: p50 {runs[name].p50_ms:,.0f} ms, p99 "
            f"{runs[name].p99_ms:,.0f} ms"
        )
    return {"latency": {"pace": asdict(pace), **latency_document(runs)}}


def _feel(arena: Arena, _options: BenchOptions) -> dict[str, Any]:
    feels = {}
    for name, start in _BOTH.items():
        topic = f"bench-feel-{name}"
        arena.source.create_topics([TopicInfo(topic, PARTITIONS, 1)])
        job = arena.job(name, "feel", topic, tuned=False)
        arena.say(f"feel: {TITLES[name]}: started twice, and idle for two minutes")
        os.sync()
        feels[name] = measure_feel(job, arena.target, start, commands=name == MIRRORLAKE)
    return {"feel": feels}


#: The parts of the race, in this order.
PARTS: Mapping[str, Measure] = {
    "throughput": _throughput,
    "fan-out": _fan_out,
    "scale": lambda arena, options: {
        "scale": measure_scale(arena, _BOTH, Size.of(options.partitions), options.pace)
    },
    "latency": _latencies,
    "feel": _feel,
}
