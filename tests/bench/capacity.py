"""Measures the figures behind `library.capacity`: one flow at rest and at a steady pace, a second
target, thousands of partitions, groups with positions in them, and backlogs.

Takes some minutes: each figure takes half a minute, with default settings, on a lake in a folder.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from mirrorlake.devtools.bench.arena import Arena, contestant
from mirrorlake.devtools.bench.contestants import start_mirrorlake
from mirrorlake.devtools.bench.latency import Pace, measure_latency
from mirrorlake.devtools.bench.measure import idle_cores, own_memory, started, watch
from mirrorlake.devtools.bench.payload import PARTITIONS, load_topic
from mirrorlake.devtools.bench.report import MIRRORLAKE, throughput_of
from mirrorlake.devtools.bench.scale import PREFIX, Size, make_groups, make_topics
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.offsets.positions import TopicAndPartition

#: How long after its first records a flow is measured, and for how long, seconds.
SETTLE_SECONDS, REST_SECONDS = 25.0, 30.0
#: How long after their creation groups have their first checkpoints behind them, seconds.
GROUPS_SECONDS = 40.0
#: Records of a backlog, by record size in bytes.
BACKLOGS: Mapping[int, int] = {120: 3_000_000, 1024: 1_000_000}
_RACE_SECONDS = 240.0


@dataclass(frozen=True)
class Seen:
    """Figures of one run: cores, and memory without mapped files (MiB), of all its processes at
    rest; cores at the pace, 0 if not measured."""

    idle_cores: float
    memory_mib: float
    busy_cores: float = 0.0


@dataclass(frozen=True)
class Backlog:
    """A backlog's record size, CPU s per million records from its first batch, and memory after."""

    record_bytes: int
    cpu_seconds_per_million: float
    memory_mib: float


@dataclass(frozen=True)
class Capacity:
    """One flow, a second target, many partitions, with groups; backlogs of small, large records."""

    one: Seen
    two: Seen
    many: Seen
    groups: Seen
    small: Backlog
    large: Backlog


def measure_capacity(arena: Arena, pace: Pace, size: Size) -> dict[str, Any]:
    """Run all measurements, one after the other. Raises ReplicationError."""
    one = _at_rest_and_at_pace(arena, "one", pace)
    with arena.more("west2") as (second,):
        two = _at_rest_and_at_pace(arena, "two", pace, (second.bootstrap_servers,))
    many, groups = _many(arena, size)
    small, large = (_backlog(arena, each, count) for each, count in BACKLOGS.items())
    measured = Capacity(one, two, many, groups, small=small, large=large)
    return {
        "pace": asdict(pace),
        **asdict(size),
        "measured": asdict(measured),
        "figures": figures_of(measured, pace, size),
    }


def figures_of(measured: Capacity, pace: Pace, size: Size) -> dict[str, float]:
    """The figures of `library.capacity_figures`, by name, as measured. Noise below 0 becomes 0."""
    one, two, many, groups = measured.one, measured.two, measured.many, measured.groups
    partitions = len(size.places(size.names))
    positions = size.groups * size.topics_of_a_group * size.partitions
    record, gigabyte = split_cost(measured.small, measured.large)
    of_records = (record + pace.record_bytes / 1e3 * gigabyte) * pace.records_per_second / 1e6
    figures = {
        "idle_cores": one.idle_cores,
        "flow_cores": two.idle_cores - one.idle_cores,
        "partitions_cores": (many.idle_cores - one.idle_cores) * 1_000 / partitions,
        "positions_cores": (groups.idle_cores - many.idle_cores) * 1_000 / positions,
        "batches_cores": one.busy_cores - one.idle_cores - of_records,
        "flow_batches_cores": (two.busy_cores - two.idle_cores) - (one.busy_cores - one.idle_cores),
        "record_cpu": record,
        "gigabyte_cpu": gigabyte,
        "memory_mib": one.memory_mib,
        "flow_mib": two.memory_mib - one.memory_mib,
        "partitions_mib": (groups.memory_mib - one.memory_mib) * 1_000 / partitions,
        "backlog_mib": max(measured.small.memory_mib, measured.large.memory_mib) - one.memory_mib,
    }
    return {name: round(max(0.0, value), 3) for name, value in figures.items()}


def split_cost(small: Backlog, large: Backlog) -> tuple[float, float]:
    """CPU s per million records of any size, and per GB: a line through two record sizes."""
    sizes = large.record_bytes - small.record_bytes
    more = large.cpu_seconds_per_million - small.cpu_seconds_per_million
    each_byte = max(0.0, more / sizes)  # CPU s per million records of one byte each, a MB
    of_bytes = each_byte * small.record_bytes
    return max(0.0, small.cpu_seconds_per_million - of_bytes), each_byte * 1e3


def _at_rest_and_at_pace(arena: Arena, what: str, pace: Pace, more: tuple[str, ...] = ()) -> Seen:
    """One topic, to one target or more."""
    topic = f"bench-capacity-{what}"
    arena.source.create_topics([TopicInfo(topic, PARTITIONS, 1)])
    job = arena.job(MIRRORLAKE, f"capacity-{what}", topic, tuned=False)
    job = replace(job, more_targets=more)
    arena.say(f"capacity: {what}: at rest, and at {pace.records_per_second:,} records/s")
    with contestant(arena, job, start_mirrorlake) as running:
        # a trickle first, so that everything has started before it rests
        measure_latency(running, job, arena.target, Pace(10, warm_up_seconds=1.0, seconds=1.0))
        cores = idle_cores(running, SETTLE_SECONDS, REST_SECONDS)
        memory = own_memory(running)
        busy = measure_latency(running, job, arena.target, pace).cores
    return Seen(cores, memory, busy)


def _many(arena: Arena, size: Size) -> tuple[Seen, Seen]:
    """Thousands of partitions at rest, then with groups."""
    servers = arena.east.bootstrap_servers
    arena.say(f"capacity: {len(size.places(size.names)):,} partitions at rest, then with groups")
    make_topics(arena.source, servers, size)
    job = arena.job(MIRRORLAKE, "capacity-many", f"{PREFIX}.*", tuned=False)
    places: dict[TopicAndPartition, int] = dict.fromkeys(size.places(size.names), size.records)
    with started(job, arena.target, start_mirrorlake, places) as (running, _):
        many = Seen(idle_cores(running, SETTLE_SECONDS, REST_SECONDS), own_memory(running))
        make_groups(arena.source, servers, size)
        cores = idle_cores(running, GROUPS_SECONDS, REST_SECONDS)
        return many, Seen(cores, own_memory(running))


def _backlog(arena: Arena, size: int, records: int) -> Backlog:
    topic = f"bench-capacity-{size}"
    arena.say(f"capacity: a backlog of {records:,} records of {size} B")
    load_topic(arena.source, topic, size, records, arena.directory)
    job = arena.job(MIRRORLAKE, f"capacity-{size}", topic, tuned=True)
    with contestant(arena, job, start_mirrorlake) as running:
        race = watch(
            running, job, [arena.target], arena.brokers, records=records, timeout=_RACE_SECONDS
        )
        memory = own_memory(running)
    return Backlog(size, throughput_of(race).cpu_seconds_per_million, memory)
