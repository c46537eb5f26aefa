"""The cost of a cluster with thousands of mostly quiet partitions: starts, an idle flow, latency
over a few of them, commands during a run, and memory."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from mirrorlake.attempts import attempts
from mirrorlake.devtools.bench.arena import Arena, Start, delete_topic
from mirrorlake.devtools.bench.contestants import Job, Running, write_topology
from mirrorlake.devtools.bench.feel import cold_commands, command_seconds, page_seconds
from mirrorlake.devtools.bench.latency import Pace, measure_latency
from mirrorlake.devtools.bench.measure import (
    QUIET,
    idle_cores,
    own_memory,
    send,
    started,
    started_again,
    wait_until_there,
)
from mirrorlake.devtools.bench.report import MIRRORLAKE
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.kafka.groups import GroupAdmin
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.offsets.positions import Committed, TopicAndPartition

PREFIX = "bench-scale-"
#: How long the brokers may take to list new topics, seconds.
LISTED_SECONDS = 180.0
#: A KRaft controller refuses to make more partitions by one request (PolicyViolationException).
#: MirrorMaker 2 asks for all new topics by one, and asks the same again until it is stopped.
MOST_MADE_AT_ONCE = 10_000


@dataclass(frozen=True)
class Size:
    """The size of the source: `records` per partition; a group has positions in all partitions of
    its topics. Latency is measured over `busy_topics`."""

    topics: int = 100
    partitions: int = 20
    records: int = 5
    groups: int = 50
    topics_of_a_group: int = 5
    busy_topics: int = 10

    @classmethod
    def of(cls, partitions: int) -> "Size":
        """So many partitions, twenty a topic, and groups: 50 for 2,000, 500 for 12,000."""
        return cls(topics=partitions // 20, groups=50 if partitions <= 2_000 else partitions // 24)

    @property
    def names(self) -> list[str]:
        """The names of the topics."""
        return [f"{PREFIX}{number:04}" for number in range(self.topics)]

    def topics_of(self, group: int) -> list[str]:
        """The topics that a group reads, different ones for each."""
        first = group * self.topics_of_a_group
        return [self.names[at % self.topics] for at in range(first, first + self.topics_of_a_group)]

    def places(self, topics: Sequence[str]) -> list[TopicAndPartition]:
        """The partitions of topics."""
        return [(topic, partition) for topic in topics for partition in range(self.partitions)]


def measure_scale(
    arena: Arena, racers: Mapping[str, Start], size: Size, pace: Pace
) -> dict[str, Any]:
    """Create the topics; each contestant in turn replicates them. Raises ReplicationError."""
    arena.say(
        f"scale: making {size.topics:,} topics with {len(size.places(size.names)):,} partitions"
    )
    make_topics(arena.source, arena.east.bootstrap_servers, size)
    make_groups(arena.source, arena.east.bootstrap_servers, size)
    measured = {}
    for name, start in racers.items():
        job = arena.job(name, "scale", f"{PREFIX}.*", tuned=False)
        arena.say(f"scale: {name}: started twice, idle for two minutes, and under load")
        if name != MIRRORLAKE and size.topics * size.partitions > MOST_MADE_AT_ONCE:
            _make_mirrors(arena, job, size)
        measured[name] = _measured(arena, job, start, name, size=size, pace=pace)
        # all of it: the next contestant may fail, and half an hour would be gone
        arena.say(f"scale: {name}: {json.dumps(measured[name])}")
        for topic in sorted(arena.target.topics()):
            if topic.startswith(f"{job.alias}.{PREFIX}"):
                delete_topic(arena.west, topic)
    return {**asdict(size), "pace": asdict(pace), "contestants": measured}


def make_topics(source: ClusterAdmin, bootstrap_servers: str, size: Size) -> None:
    """Create topics with records."""
    source.create_topics([TopicInfo(name, size.partitions, 1) for name in size.names])
    wait_until_listed(source, size.names)
    send(bootstrap_servers, size.places(size.names) * size.records)


def wait_until_listed(admin: ClusterAdmin, names: Collection[str]) -> None:
    """Wait until a cluster lists topics. Raises RuntimeError after `LISTED_SECONDS`."""
    for last in attempts(LISTED_SECONDS, 0.05):
        missing = set(names) - admin.topics().keys()
        if not missing:
            return
        if last:
            raise RuntimeError(f"{len(missing)} topics are not listed by cluster {admin.alias}")


def make_groups(source: ClusterAdmin, bootstrap_servers: str, size: Size) -> None:
    """Create groups with positions in the topics. Raises ReplicationError."""
    moves = {
        f"{PREFIX}{number:04}": dict.fromkeys(size.places(size.topics_of(number)), Committed(1))
        for number in range(size.groups)
    }
    client: Settings = {"bootstrap.servers": bootstrap_servers, **QUIET}
    with closing(GroupAdmin(source, LiveSettings(lambda: client))) as groups:
        _move(groups, moves)


def _make_mirrors(arena: Arena, job: Job, size: Size) -> None:
    """Make the target topics of a contestant that cannot make so many. Raises ReplicationError."""
    arena.say(f"scale: making the {size.topics:,} topics at the target that it cannot make itself")
    names = [f"{job.alias}.{name}" for name in size.names]
    arena.target.create_topics([TopicInfo(name, size.partitions, 1) for name in names])
    wait_until_listed(arena.target, names)


def _move(groups: GroupAdmin, moves: Mapping[str, Mapping[TopicAndPartition, Committed]]) -> None:
    """Set positions, and retry: a new cluster elects coordinators. Raises ReplicationError."""
    for last in attempts(LISTED_SECONDS, 0.5):
        refused = groups.move(moves)
        if not refused:
            return
        if last:
            raise ReplicationError(f"positions were refused: {next(iter(refused.values()))}")
        moves = {group: moves[group] for group, _, _ in refused}


def _measured(
    arena: Arena, job: Job, start: Start, name: str, *, size: Size, pace: Pace
) -> dict[str, Any]:
    """Figures of one contestant: seconds from a first start until everything is at the target, from
    a restart until one record is, and from the first record of a new topic to its mirror; cores of
    the idle flow, heartbeats included; memory of all its processes, without shared pages; latency,
    and the cores meanwhile. `commands` are mirrorlake's alone: seconds of cold commands, run beside
    the flow except `plan`."""
    ours, commands = name == MIRRORLAKE, dict[str, float]()
    if ours:
        write_topology(job)
        commands["plan"] = command_seconds(job, "plan")
    target, places = arena.target, size.places(size.names)
    wanted = dict.fromkeys(places, size.records)
    with started(job, target, start, wanted) as (running, new):
        cores = idle_cores(running)
        memory = own_memory(running)
        if ours:
            commands |= cold_commands(job, size.names[0])
            commands["dashboard"] = page_seconds(job)
        made = _new_topic(arena, running, job, name)
        busy = size.places(size.names[: size.busy_topics])
        latency = measure_latency(running, job, target, pace, busy)
    again = started_again(job, target, start, places[-1])
    return {
        "new_seconds": new,
        "again_seconds": again,
        "topic_seconds": made,
        "idle_cores": cores,
        "memory_mib": memory,
        **{name: getattr(latency, name) for name in ("p50_ms", "p99_ms", "cores")},
        "commands": commands,
    }


def _new_topic(arena: Arena, running: Running, job: Job, name: str) -> float:
    """Seconds from the first record of a new topic to its mirror."""
    place = (f"{PREFIX}new-{name}", 0)
    arena.source.create_topics([TopicInfo(place[0], 1, 1)])
    send(job.source, [place])
    began = time.monotonic()
    wait_until_there(running, arena.target, job, {place: 1})
    return round(time.monotonic() - began, 1)
