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
from mirrorlake.devtools.bench.capacity import measure_capacity
from mirrorlake.devtools.bench.contestants import (
    start_mirrorlake,
    start_mirrormaker,
    start_mirrormaker_and_landing,
    start_plain_copier,
)
from mirrorlake.devtools.bench.control import measure_control
from mirrorlake.devtools.bench.executors import measure_executors
from mirrorlake.devtools.bench.feel import measure_feel
from mirrorlake.devtools.bench.group_sync import measure_groups
from mirrorlake.devtools.bench.lakes import lakes_of
from mirrorlake.devtools.bench.latency import measure_latency
from mirrorlake.devtools.bench.measure import watch
from mirrorlake.devtools.bench.payload import PARTITIONS, load_topic
from mirrorlake.devtools.bench.proof import measure_proof
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
from mirrorlake.devtools.bench.soak import KEPT, measure_soak
from mirrorlake.devtools.bench.stage_size import measure_stage
from mirrorlake.devtools.bench.start import measure_starts
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


def run_bench(options: BenchOptions, parent: Path, say: Say, keep: Keep) -> dict[str, Any]:
    """Measure; return a JSON document. Works in a new folder of `parent`, left if anything fails.

    `keep` gets the document so far after each part, so that a part that fails loses no figures.
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
            for part, measure in PARTS.items():
                if part in options.parts:
                    document |= measure(arena, options)
                    keep(document)
    finally:
        stop_clusters(clusters)
    if "control" in options.parts:  # these need no clusters
        say("control: making a stage of 100,000 files with 1,000 partitions")
        document["stage"] = measure_stage(directory / "stage")
        keep(document)
        say("control: making lakes with the history of a day and of a year")
        document["starts"] = measure_starts(directory / "starts")
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


def _proof(arena: Arena, options: BenchOptions) -> dict[str, Any]:
    proofs = {}
    for size, records in options.backlogs.items():
        job = arena.job(MIRRORLAKE, f"proof-{size}", f"bench-proof-{size}", tuned=True)
        arena.say(
            f"proof: {records // 4:,} records of {size} B, mirrored, compared by content, and read "
            "by Spark"
        )
        proofs[str(size)] = measure_proof(job, arena.source, size, records // 4)
    return {"proof": proofs}


def _soak(arena: Arena, options: BenchOptions) -> dict[str, Any]:
    topic = "bench-soak"
    arena.source.create_topics([TopicInfo(topic, PARTITIONS, 1, configs=KEPT)])
    job = arena.job(MIRRORLAKE, "soak", topic, tuned=True)
    arena.say(f"soak: {options.soak_minutes:.0f} minutes at full rate")
    with contestant(arena, job, start_mirrorlake) as running:
        soak = measure_soak(running, job, arena.target, options.soak_minutes, arena.say)
    return {"soak": soak}


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


def _control(arena: Arena, _options: BenchOptions) -> dict[str, Any]:
    arena.say("control: making 300 topics with 1,000 partitions")
    both = arena.east.bootstrap_servers, arena.west.bootstrap_servers
    control = measure_control(*both)
    arena.say("control: making 500 groups over 200 topics")
    return {"control": control, "groups": measure_groups(*both, arena.directory / "groups")}


#: The measurements between two clusters, in this order; each returns parts of the document.
PARTS: Mapping[str, Callable[[Arena, BenchOptions], dict[str, Any]]] = {
    "throughput": _throughput,
    "fan-out": _fan_out,
    "proof": _proof,
    "soak": _soak,
    "scale": lambda arena, options: {
        "scale": measure_scale(arena, _BOTH, Size.of(options.partitions), options.pace)
    },
    "capacity": lambda arena, options: {
        "capacity": measure_capacity(arena, options.pace, Size(records=1))
    },
    "latency": _latencies,
    "executors": lambda arena, options: {
        "executors": measure_executors(arena, options.executor_records)
    },
    "feel": _feel,
    "control": _control,
}
