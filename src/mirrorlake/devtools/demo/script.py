"""The demo's script: records, a driver killed with -9, a lost cluster, proof of exactly once."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import TopicPartition

import mirrorlake
from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.devtools.demo import consumer_group
from mirrorlake.devtools.demo.consumer_group import Feeder
from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.devtools.local.develop import topology_text
from mirrorlake.errors import InputError, ReplicationError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.translate import translate
from mirrorlake.spark.session import open_session

Say = Callable[[str], None]
TOPIC, REMOTE, PARTITIONS, FLOW = "orders", "east.orders", 3, "east->west"
_MARKER = ".mirrorlake-demo"


@dataclass(frozen=True)
class DemoResult:
    """What the demo proved: the number of records at the source and at the target, how many
    `verify` has proven, whether both sides are equal and the offset translated back, that offset on
    both sides, and how many records the moved group read twice or never."""

    produced: int
    verified: int
    target_records: int
    equal: bool
    offset: int
    translated: int
    back: int
    group_read_twice: int
    group_never_read: int
    lake: str

    @property
    def proven(self) -> bool:
        """Whether everything was proven."""
        whole = self.equal and self.verified == self.produced
        return whole and not self.group_read_twice and not self.group_never_read


def play(directory: Path, records: int, say: Say) -> DemoResult:
    """Play the script in `directory`, which is made anew. Raises InputError for other content."""
    directory = directory.absolute()
    _fresh(directory)
    say("1/7 Starting two Kafka clusters, east and west")
    clusters = start_clusters(["east", "west"], directory / "clusters")
    try:
        return _play(directory, clusters, records, say)
    finally:
        stop_clusters(clusters)


def _fresh(directory: Path) -> None:
    if directory.exists() and any(directory.iterdir()) and not (directory / _MARKER).exists():
        raise InputError(
            f"{directory} holds something other than a demo; name another place with --directory"
        )
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / _MARKER).touch()


def _play(
    directory: Path, clusters: dict[str, EmbeddedCluster], records: int, say: Say
) -> DemoResult:
    for name, cluster in clusters.items():
        say(f"      {name} is up at {cluster.bootstrap_servers}")
    topology = directory / "mirrorlake.yml"
    topology.write_text(topology_text(clusters, TOPIC), encoding="utf-8")
    source, target = clusters["east"].bootstrap_servers, clusters["west"].bootstrap_servers
    admin = ClusterAdmin("east", {"bootstrap.servers": source})
    admin.create_topics([TopicInfo(TOPIC, PARTITIONS, 1)])
    read = _crash_and_recover(topology, source, target, records, say)
    return _prove(load_topology(topology), clusters, read, records, say)


def _crash_and_recover(
    topology: Path, source: str, target: str, records: int, say: Say
) -> Counter[bytes]:
    """Chapters 2 to 4; returns what the group read meanwhile."""
    say(f"2/7 Producing {records:,} orders to east while `mirrorlake run` replicates them to west")
    feeder = Feeder(source, TOPIC, PARTITIONS, records)
    feeder.start()
    run = _start_run(topology)
    try:
        _wait_until_some_arrived(target, run, records)
        say(f"3/7 Killing the driver (pid {run.pid}) with -9, in the middle of its work")
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    finally:
        if run.poll() is None:
            run.kill()
    read = consumer_group.read_as_group(source, TOPIC, PARTITIONS, records // 3)
    say(
        f"      meanwhile consumer group {consumer_group.GROUP} reads {read.total():,} orders at "
        "east and commits"
    )
    say("4/7 Starting it again; it goes on from the tables and from west's own positions")
    feeder.join()
    _finish(topology)
    return read


def _prove(
    topology: Topology,
    clusters: dict[str, EmbeddedCluster],
    read: Counter[bytes],
    records: int,
    say: Say,
) -> DemoResult:
    """Chapters 5 to 7."""
    source, target = clusters["east"].bootstrap_servers, clusters["west"].bootstrap_servers
    say("5/7 Comparing both sides with a read_committed consumer, record by record")
    lake = open_lake(open_session, topology.lake, topology.directory)
    wanted, there = _read(source, TOPIC), _read(target, REMOTE)
    equal = _compare(wanted, there, records, say)
    verified = _verify(topology.directory, say)
    offset = len(wanted[0]) // 2
    forth, back = _translate(lake, offset, say)
    say("6/7 Killing east with -9, for good: `mirrorlake failover` moves the group to west")
    clusters["east"].kill()
    values = {value or b"" for part in wanted for _, value, _ in part}
    moved = _fail_over(lake, topology, read, target, wanted=values, say=say)
    _tell_what_next(topology.directory, lake, say)
    say(
        f"      Proven by content, record by record, when both clusters were there: {verified:,} "
        f"of {records:,}."
    )
    total = sum(map(len, there))
    return DemoResult(
        produced=records,
        verified=verified,
        target_records=total,
        equal=equal and back == offset,
        offset=offset,
        translated=forth,
        back=back,
        group_read_twice=moved.twice,
        group_never_read=moved.never,
        lake=str(lake.directory),
    )


def _start_run(topology: Path, *flags: str) -> "subprocess.Popen[bytes]":
    log = (topology.parent / "run.log").open("ab")
    command = [sys.executable, "-m", "mirrorlake.cli.main", "-c", str(topology), "run", *flags]
    return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def _wait_until_some_arrived(target: str, run: "subprocess.Popen[bytes]", records: int) -> None:
    with_some = max(1, records // 3)
    seen = 0
    soon = {"topic.metadata.refresh.interval.ms": 500}
    with closing(consumer_group.consumer_of(target, "demo-watch", soon)) as consumer:
        consumer.subscribe([REMOTE])
        while seen < with_some:
            seen += sum(
                1 for message in consumer.consume(10_000, timeout=0.5) if message.error() is None
            )
            if run.poll() is not None:
                raise ReplicationError(
                    "the replicator ended by itself; see run.log in the demo's directory"
                )


def _finish(topology: Path) -> None:
    if _start_run(topology, "--once").wait() != 0:
        log = topology.parent / "run.log"
        raise ReplicationError(f"the replicator did not come through; see {log}")


Read = list[list[tuple[bytes | None, bytes | None, int]]]


def _compare(wanted: Read, there: Read, records: int, say: Say) -> bool:
    total = sum(map(len, there))
    equal = wanted == there and total == records
    say(
        f"      east {TOPIC}: {sum(map(len, wanted)):,} records   west {REMOTE}: {total:,} records "
        "  " + ("equal, in order, each once" if equal else "NOT equal")
    )
    return equal


def _verify(directory: Path, say: Say) -> int:
    """Run `verify`; return how many records it has proven."""
    opened = mirrorlake.open(directory / "mirrorlake.yml")
    verified = opened.verify(topics=[TOPIC])
    count = len(verified.differences)
    differences = f"{count} differences" if count else "no difference"
    say(
        f"      mirrorlake verify: {verified.proven:,} of {verified.records:,} records proven by "
        f"content in {verified.ranges} ranges; {differences}"
    )
    return verified.proven


def _translate(lake: Lake, offset: int, say: Say) -> tuple[int, int]:
    """Translate an offset of partition 0 to west, and that back to east."""
    there = translate(lake.reader, FLOW, TOPIC, 0, offset).offset
    back = translate(lake.reader, FLOW, REMOTE, 0, there, reverse=True).offset
    say(
        f"      {TOPIC}-0 offset {offset} on east is {REMOTE}-0 offset {there} on west, back: "
        f"{back}"
    )
    return there, back


def _fail_over(
    lake: Lake,
    topology: Topology,
    read: Counter[bytes],
    target: str,
    *,
    wanted: set[bytes],
    say: Say,
) -> consumer_group.Moved:
    for row in consumer_group.move(lake, topology, FLOW):
        say(
            f"      {row['topic']}-{row['partition']} at {row['position']} on east is now "
            f"{row['to_topic']}-{row['partition']} at {row['to_position']} on west"
        )
    moved = consumer_group.compare(
        read, consumer_group.read_as_group(target, REMOTE, PARTITIONS), wanted
    )
    say(
        f"      {consumer_group.GROUP} reads the other {moved.after:,} orders there: "
        f"{moved.twice:,} twice, {moved.never:,} never"
    )
    return moved


def _tell_what_next(directory: Path, lake: Lake, say: Say) -> None:
    late = lake.reader.rows(
        "SELECT max(replication_p50_ms) AS p50, max(replication_p99_ms) AS p99 FROM latency"
    )[0]
    say(
        f"      worst batch, backlog and crash included: replication p50 {late['p50']} ms, p99 "
        f"{late['p99']} ms"
    )
    say(f"7/7 The tables are in {lake.directory}. Try:")
    config = f"mirrorlake -c {os.path.relpath(directory)}/mirrorlake.yml"
    for query in (
        "SELECT flow, batch_id, topic, partition, record_count, replication_p99_ms FROM latency "
        "ORDER BY batch_id",
        "SELECT topic, partition, source_first, source_last, target_first, target_last FROM "
        "offset_map",
        "SELECT topic, partition, count(*) AS staged FROM records GROUP BY topic, partition",
    ):
        say(f'      {config} sql "{query}"')


def _read(bootstrap_servers: str, topic: str) -> Read:
    """Every committed record of a topic, per partition, in order: (key, value, timestamp in ms)."""
    records: Read = [[] for _ in range(PARTITIONS)]
    with closing(consumer_group.consumer_of(bootstrap_servers, "demo-compare")) as consumer:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        open_partitions = set(range(PARTITIONS))
        while open_partitions:
            for message in consumer.consume(10_000, timeout=1.0):
                if message.error() is None:
                    records[message.partition()].append(
                        (message.key(), message.value(), message.timestamp()[1])
                    )
                else:
                    open_partitions.discard(message.partition())
    return records
