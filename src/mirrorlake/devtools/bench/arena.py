"""What a benchmark runs with: its options, and the clusters between which contestants race."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from confluent_kafka.admin import AdminClient

from mirrorlake.devtools.bench.contestants import Job, Running
from mirrorlake.devtools.bench.lakes import LakeOf, in_folder
from mirrorlake.devtools.bench.latency import Pace
from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.kafka.admin import ClusterAdmin

Say = Callable[[str], None]
Start = Callable[[Job], Running]
#: librdkafka reports events that it drops when a client ends; that is no news.
QUIET = {"log_level": 3}
#: What a contestant wrote is gone when the next one starts: in its minute of grace it would hold
#: gigabytes of memory, and memory that was not used lately is expensive on virtual machines, whose
#: hosts take it back (six times, measured).
BROKERS = {"log.segment.delete.delay.ms": "1000"}


@dataclass(frozen=True)
class BenchOptions:
    """What to measure: `backlogs` are records by record size in bytes, `fan_out` such that go to
    three targets at once, and `proof` such that `verify` compares; empty, `pace` None, `feel`,
    `capacity` or `control` False, leaves a part out, as 0 does of `executors`, the records of each
    executor, and of `scale`, its partitions. `laps` is how often a backlog is raced over;
    `soak_minutes` how long memory is watched at full rate. `lake` is the kind of mirrorlake's lakes
    (`lakes.KINDS`)."""

    backlogs: Mapping[int, int]
    fan_out: Mapping[int, int] = field(default_factory=dict)
    proof: Mapping[int, int] = field(default_factory=dict)
    pace: Pace | None = field(default_factory=Pace)
    feel: bool = True
    scale: int = 0
    capacity: bool = False
    executors: int = 0
    control: bool = True
    keep: bool = False
    laps: int = 1
    soak_minutes: float = 0.0
    lake: str = "folder"


@dataclass(frozen=True)
class Arena:
    """The two clusters and the folder of one benchmark, and where its lakes lie."""

    east: EmbeddedCluster
    west: EmbeddedCluster
    directory: Path
    say: Say
    lake_of: LakeOf = in_folder

    @cached_property
    def source(self) -> ClusterAdmin:
        return ClusterAdmin("east", {"bootstrap.servers": self.east.bootstrap_servers, **QUIET})

    @cached_property
    def target(self) -> ClusterAdmin:
        return ClusterAdmin("west", {"bootstrap.servers": self.west.bootstrap_servers, **QUIET})

    def job(self, name: str, what: str, topic: str, tuned: bool) -> Job:
        """Describe a run in a fresh folder, under an alias that no other run has."""
        alias = f"{name.replace('_', '-')}-{what}"
        directory = self.directory / alias
        directory.mkdir()
        return Job(
            self.east.bootstrap_servers,
            self.west.bootstrap_servers,
            topic,
            alias=alias,
            directory=directory,
            tuned=tuned,
            own_lake=self.lake_of(alias, directory),
        )


@contextmanager
def contestant(arena: Arena, job: Job, start: Start) -> Iterator[Running]:
    """Run a contestant with nothing left over from the one before; remove what it wrote, unless it
    fails."""
    os.sync()
    running = start(job)
    try:
        yield running
    finally:
        running.stop()
    delete_topic(arena.west, job.target_topic)
    for stage in job.directory.iterdir():
        if stage.is_dir():
            shutil.rmtree(stage)


def delete_topic(cluster: EmbeddedCluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **QUIET})
    for future in admin.delete_topics([topic]).values():
        future.result()
