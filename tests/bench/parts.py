"""What a checkout measures, with the race: how much its parts cost, and how they grow."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mirrorlake.devtools.bench.arena import Arena, BenchOptions, Say, contestant
from mirrorlake.devtools.bench.contestants import start_mirrorlake
from mirrorlake.devtools.bench.payload import PARTITIONS
from mirrorlake.devtools.bench.report import MIRRORLAKE
from mirrorlake.devtools.bench.run import PARTS as RACE
from mirrorlake.devtools.bench.run import Measure, MeasureAlone
from mirrorlake.devtools.bench.scale import Size
from mirrorlake.kafka.values import TopicInfo
from tests.bench.capacity import measure_capacity
from tests.bench.control import measure_control
from tests.bench.executors import measure_executors
from tests.bench.group_sync import measure_groups
from tests.bench.proof import measure_proof
from tests.bench.soak import KEPT, measure_soak
from tests.bench.stage_size import measure_stage
from tests.bench.start import measure_starts


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


def watch_memory(arena: Arena, _options: BenchOptions, minutes: float = 60.0) -> dict[str, Any]:
    """Watch memory at full rate."""
    topic = "bench-soak"
    arena.source.create_topics([TopicInfo(topic, PARTITIONS, 1, configs=KEPT)])
    job = arena.job(MIRRORLAKE, "soak", topic, tuned=True)
    arena.say(f"soak: {minutes:.0f} minutes at full rate")
    with contestant(arena, job, start_mirrorlake) as running:
        soak = measure_soak(running, job, arena.target, minutes, arena.say)
    return {"soak": soak}


def _control(arena: Arena, _options: BenchOptions) -> dict[str, Any]:
    arena.say("control: making 300 topics with 1,000 partitions")
    both = arena.east.bootstrap_servers, arena.west.bootstrap_servers
    control = measure_control(*both)
    arena.say("control: making 500 groups over 200 topics")
    return {"control": control, "groups": measure_groups(*both, arena.directory / "groups")}


def _stage(directory: Path, say: Say) -> dict[str, Any]:
    say("control: making a stage of 100,000 files with 1,000 partitions")
    return {"stage": measure_stage(directory / "stage")}


def _starts(directory: Path, say: Say) -> dict[str, Any]:
    say("control: making lakes with the history of a day and of a year")
    return {"starts": measure_starts(directory / "starts")}


#: The measurements between two clusters, in this order.
PARTS: Mapping[str, Measure] = {
    "throughput": RACE["throughput"],
    "fan-out": RACE["fan-out"],
    "proof": _proof,
    "soak": watch_memory,
    "scale": RACE["scale"],
    "capacity": lambda arena, options: {
        "capacity": measure_capacity(arena, options.pace, Size(records=1))
    },
    "latency": RACE["latency"],
    "executors": lambda arena, options: {
        "executors": measure_executors(arena, min(options.backlogs.items())[1] // 2)
    },
    "feel": RACE["feel"],
    "control": _control,
}
#: Those that need no clusters, each with its part.
AFTER: Sequence[tuple[str, MeasureAlone]] = (("control", _stage), ("control", _starts))
