"""What a cluster with thousands of partitions costs, most of which are quiet: starts, an idle flow,
latency over few of them, commands beside a run, and memory."""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka import Producer

from mirrorlake.attempts import attempts
from mirrorlake.devtools.bench.arena import QUIET, Arena, Start, delete_topic
from mirrorlake.devtools.bench.contestants import Job, Running, write_topology
from mirrorlake.devtools.bench.control import LISTED_SECONDS, wait_until_listed
from mirrorlake.devtools.bench.feel import command_seconds, idle_cores, page_seconds
from mirrorlake.devtools.bench.latency import Pace, measure_latency
from mirrorlake.devtools.bench.report import MIRRORLAKE, latency_of
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.kafka.groups import GroupAdmin
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.offsets.positions import Committed, TopicAndPartition
from mirrorlake.processes import memory_mib

PREFIX = "bench-scale-"
_START_SECONDS = 900.0


@dataclass(frozen=True)
class Size:
    """What is there: records are of each partition, and a group has positions in all partitions of
    its topics. Latency is measured over `busy_topics`."""

    topics: int = 100
    partitions: int = 20
    records: int = 5
    groups: int = 50
    topics_of_a_group: int = 5
    busy_topics: int = 10

    @classmethod
    def of(cls, partitions: int) -> "Size":
        """As many partitions in topics of twenty, and groups in proportion: 50 to 2,000, 500 to
        12,000."""
        return cls(topics=partitions // 20, groups=50 if partitions <= 2_000 else partitions // 24)

    @property
    def names(self) -> list[str]:
        """The names of the topics."""
        return [f"{PREFIX}{number:04}" for number in range(self.topics)]

    def places(self, topics: Sequence[str]) -> list[TopicAndPartition]:
        """The partitions of topics."""
        return [(topic, partition) for topic in topics for partition in range(self.partitions)]


@dataclass(frozen=True)
class Scale:
    """Figures of one contestant: seconds until all that is there is at the target, from nothing;
    until the first record of one topic is, where it ran before, and of a topic that is made while
    it runs; cores of the idle flow, heartbeats included; memory of all its processes, without
    pages that they share; latency, and the cores that it took. The rest is mirrorlake's alone,
    in seconds: cold commands, those but `plan` beside the run."""

    new_seconds: float
    again_seconds: float
    topic_seconds: float
    idle_cores: float
    memory_mib: float
    p50_ms: float
    p99_ms: float
    cores: float
    commands: Mapping[str, float]


def measure_scale(
    arena: Arena, racers: Mapping[str, Start], size: Size, pace: Pace
) -> dict[str, Any]:
    """Make the topics, and have one contestant after the other replicate them. Raises
    ReplicationError."""
    arena.say(
        f"scale: making {size.topics:,} topics with {len(size.places(size.names)):,} partitions"
    )
    make_topics(arena.source, arena.east.bootstrap_servers, size)
    make_groups(arena.source, arena.east.bootstrap_servers, size)
    measured = {}
    for name, start in racers.items():
        job = arena.job(name, "scale", f"{PREFIX}.*", tuned=False)
        arena.say(f"scale: {name}: started twice, idle for two minutes, and under load")
        measured[name] = asdict(_measured(arena, job, start, name, size=size, pace=pace))
        arena.say(f"scale: {name}: {measured[name]['idle_cores']} cores idle")
        for topic in sorted(arena.target.topics()):
            if topic.startswith(f"{job.alias}.{PREFIX}"):
                delete_topic(arena.west, topic)
    return {**asdict(size), "pace": asdict(pace), "contestants": measured}


def make_topics(source: ClusterAdmin, bootstrap_servers: str, size: Size) -> None:
    """Make topics with records."""
    source.create_topics([TopicInfo(name, size.partitions, 1) for name in size.names])
    wait_until_listed(source, size.names)
    _send(bootstrap_servers, size.places(size.names) * size.records)


def make_groups(source: ClusterAdmin, bootstrap_servers: str, size: Size) -> None:
    """Make groups with positions in the topics. Raises ReplicationError."""
    moves = {
        f"{PREFIX}{number:04}": dict.fromkeys(
            size.places(_some(size.names, number, size.topics_of_a_group)), Committed(1)
        )
        for number in range(size.groups)
    }
    client: Settings = {"bootstrap.servers": bootstrap_servers, **QUIET}
    with closing(GroupAdmin(source, LiveSettings(lambda: client))) as groups:
        _move(groups, moves)


def _move(groups: GroupAdmin, moves: Mapping[str, Mapping[TopicAndPartition, Committed]]) -> None:
    """Set positions; a cluster that has just been started takes its time to have coordinators.
    Raises ReplicationError."""
    for last in attempts(LISTED_SECONDS, 0.5):
        refused = groups.move(moves)
        if not refused:
            return
        if last:
            raise ReplicationError(f"positions were refused: {next(iter(refused.values()))}")
        moves = {group: moves[group] for group, _, _ in refused}


def _some(names: Sequence[str], number: int, count: int) -> list[str]:
    """So many of the topics, other ones for each number."""
    return [names[(number * count + step) % len(names)] for step in range(count)]


def _measured(arena: Arena, job: Job, start: Start, name: str, *, size: Size, pace: Pace) -> Scale:
    ours, commands = name == MIRRORLAKE, dict[str, float]()
    if ours:
        write_topology(job)
        commands["plan"] = command_seconds(job, "plan")
    target, places = arena.target, size.places(size.names)
    running, new = started(job, target, start, dict.fromkeys(places, size.records))
    try:
        cores = idle_cores(running)
        memory = own_memory(running)
        if ours:
            commands |= _commands(job, size)
        made = _new_topic(arena, running, job, name)
        busy = size.places(size.names[: size.busy_topics])
        arrivals = measure_latency(running, job, target, pace, busy)
    finally:
        running.stop()
    latency = latency_of(arrivals)
    quiet = places[-1]
    _send(job.source, [quiet])
    there = _ends(target, job, [quiet]).get(quiet, 0)
    running, again = started(job, target, start, {quiet: there + 1})
    running.stop()
    return Scale(
        new_seconds=new,
        again_seconds=again,
        topic_seconds=made,
        idle_cores=cores,
        memory_mib=memory,
        p50_ms=latency.p50_ms,
        p99_ms=latency.p99_ms,
        cores=latency.cores,
        commands=commands,
    )


def own_memory(running: Running) -> int:
    """Resident memory of all processes, without files that they map, MiB."""
    programs = ("python", "java")
    return round(sum(memory_mib(running.pids, None, name, own=True) for name in programs))


def started(
    job: Job, target: ClusterAdmin, start: Start, wanted: Mapping[TopicAndPartition, int]
) -> tuple[Running, float]:
    """Start a contestant; how long it takes until the target's partitions have so many offsets at
    least, of each partition of the source."""
    began = time.monotonic()
    running = start(job)
    try:
        _wait_until_there(running, target, job, wanted)
    except BaseException:
        running.stop()
        raise
    return running, round(time.monotonic() - began, 1)


def _wait_until_there(
    running: Running, target: ClusterAdmin, job: Job, wanted: Mapping[TopicAndPartition, int]
) -> None:
    def there() -> bool:
        ends = _ends(target, job, wanted)
        return all(ends.get(place, 0) >= count for place, count in wanted.items())

    running.wait_until(
        there,
        _START_SECONDS,
        lambda: f"{running.name} was not done after {_START_SECONDS:.0f} s",
    )


def _ends(
    target: ClusterAdmin, job: Job, places: Sequence[TopicAndPartition] | Mapping[Any, int]
) -> dict[TopicAndPartition, int]:
    """Where the mirrors of partitions end; those that are not there are missing."""
    topics = target.topics()
    names = {(f"{job.alias}.{topic}", partition): (topic, partition) for topic, partition in places}
    there = [place for place in names if place[0] in topics]
    ends = target.end_offsets(there, skip_silent=True)
    return {names[place]: end for place, end in ends.items()}


def _commands(job: Job, size: Size) -> dict[str, float]:
    flow = f"{job.alias}->west"
    place = ("--topic", size.names[0], "--partition", "0", "--offset", "1")
    return {
        "status": command_seconds(job, "status"),
        "translate": command_seconds(job, "translate", "--flow", flow, *place),
        "groups": command_seconds(job, "groups", "--flow", flow),
        "dashboard": page_seconds(job),
    }


def _new_topic(arena: Arena, running: Running, job: Job, name: str) -> float:
    """Seconds from the first record of a topic that is just made to its mirror."""
    place = (f"{PREFIX}new-{name}", 0)
    arena.source.create_topics([TopicInfo(place[0], 1, 1)])
    _send(job.source, [place])
    began = time.monotonic()
    _wait_until_there(running, arena.target, job, {place: 1})
    return round(time.monotonic() - began, 1)


def _send(bootstrap_servers: str, places: Sequence[TopicAndPartition]) -> None:
    """Write one record for each of some partitions, as often as it is among them."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 20, **QUIET})
    for number, (topic, partition) in enumerate(places):
        producer.produce(topic, b"%d" % number, partition=partition)
        producer.poll(0)
    if left := producer.flush(180):
        raise ReplicationError(f"{left:,} records could not be written")
