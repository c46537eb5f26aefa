"""The options of a benchmark, and the clusters between which contestants race."""

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from confluent_kafka.admin import AdminClient

from mirrorlake.devtools.bench.contestants import Job, Running
from mirrorlake.devtools.bench.lakes import LakeOf, in_folder
from mirrorlake.devtools.bench.latency import Pace
from mirrorlake.devtools.bench.measure import QUIET
from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.kafka.admin import ClusterAdmin

Say = Callable[[str], None]
Start = Callable[[Job], Running]
#: Deletes a contestant's data before the next one starts: in Kafka's default minute it would occupy
#: gigabytes of memory, and on virtual machines memory that was not used lately is slow (six times,
#: measured), since hosts reclaim it.
BROKERS = {"log.segment.delete.delay.ms": "1000"}


@dataclass(frozen=True)
class BenchOptions:
    """What to measure: `parts` are names of parts, `backlogs` maps record sizes in bytes to
    records. `laps` is how often a backlog is raced, `partitions` is for `scale`, and `lake` is the
    kind of mirrorlake's lakes (`lakes.KINDS`)."""

    parts: Collection[str]
    backlogs: Mapping[int, int] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)
    partitions: int = 2_000
    keep: bool = False
    laps: int = 1
    lake: str = "folder"


@dataclass(frozen=True)
class Arena:
    """The two clusters, the folder and the lakes of one benchmark."""

    east: EmbeddedCluster
    west: EmbeddedCluster
    directory: Path
    say: Say
    lake_of: LakeOf = in_folder

    @property
    def brokers(self) -> list[int]:
        """The processes of both clusters."""
        return [*self.east.pids, *self.west.pids]

    @contextmanager
    def more(self, *names: str) -> Iterator[list[EmbeddedCluster]]:
        """Run more clusters while the block runs."""
        self.say(f"starting {' and '.join(names)} too")
        clusters = start_clusters(names, self.directory / "more", properties=BROKERS)
        try:
            yield [*clusters.values()]
        finally:
            stop_clusters(clusters)

    @cached_property
    def source(self) -> ClusterAdmin:
        return ClusterAdmin("east", {"bootstrap.servers": self.east.bootstrap_servers, **QUIET})

    @cached_property
    def target(self) -> ClusterAdmin:
        return ClusterAdmin("west", {"bootstrap.servers": self.west.bootstrap_servers, **QUIET})

    def job(self, name: str, what: str, topic: str, tuned: bool) -> Job:
        """Describe a run in a new folder, under a unique alias."""
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
    """Run a contestant while the block runs, then remove what it wrote, unless it failed."""
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
