"""Topologies of several flows, replicated in this process, and what must hold of each."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import yaml
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec
from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.run.options import RunOptions
from mirrorlake.run.replicator import Replicator
from mirrorlake.run.resolve import Wanted, resolve
from tests.support.kafka import NewRecord, Record, partition_count, read_topics, topics_of, write
from tests.support.lake_rows import now_of
from tests.support.replication import QUIET, lake_of


def write_flows(
    directory: Path, clusters: Mapping[str, str], flows: Mapping[str, Mapping[str, Any]]
) -> Path:
    """Write, or edit, a topology file; its lake lies beside it."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "mirrorlake.yml"
    document = {
        "clusters": {alias: {"bootstrap_servers": address} for alias, address in clusters.items()},
        "lake": {"path": "./lake"},
        # Quick, so that tests need not wait: a new topic is then seen within 2 s.
        # And without heartbeats, which are records that go on coming.
        "defaults": {"refresh_topics_interval_seconds": 2, **QUIET},
        "flows": {name: dict(settings) for name, settings in flows.items()},
    }
    fresh = directory / ".mirrorlake.yml"
    fresh.write_text(yaml.safe_dump(document), encoding="utf-8")
    fresh.replace(path)
    return path


@dataclass
class Live:
    """A replicator that runs in this process."""

    lake: Lake
    topology: Path
    replicator: Replicator
    reports: list[tuple[str, BatchReport]] = field(default_factory=list)
    raised: list[BaseException] = field(default_factory=list)

    def records_of(self, flow: str) -> int:
        """How many records a flow has produced since the start."""
        return sum(report.record_count for name, report in list(self.reports) if name == flow)

    def incidents(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Open incidents."""
        return incidents(self.lake, kind)

    def decide(self, choice: str, **wanted: Any) -> list[dict[str, Any]]:
        """What `mirrorlake resolve` does."""
        return resolve(
            Deployment.opened(self.lake, Connections(load_topology(self.topology))),
            Wanted(**wanted),
            choice,
        ).decided


def incidents(lake: Lake, kind: str | None = None) -> list[dict[str, Any]]:
    """Open incidents of a lake."""
    rows = now_of(lake).table_rows("open_incidents")
    return [row for row in rows if kind in (None, row["kind"])]


@contextmanager
def live(
    spark: SparkSession,
    topology: Path,
    watch: bool = False,
    chosen: Sequence[str] | None = None,
    expect: bool = False,
) -> Iterator[Live]:
    """`mirrorlake run` in a thread for the time of the block. With `watch` edits of the file are
    taken over.

    What it raised is raised at the end, or, if something is expected, left in `raised`.
    """
    loaded = load_topology(topology)
    run: Live

    def report(flow: str, batch: BatchReport) -> None:
        run.reports.append((flow, batch))

    options = RunOptions(
        config=topology if watch else None, chosen=None if chosen is None else tuple(chosen)
    )
    lake = lake_of(spark, topology)
    run = Live(
        lake,
        topology,
        Replicator(
            Deployment.opened(lake, Connections(loaded)),
            loaded.active_flows(chosen),
            options,
            report=report,
        ),
    )

    def target() -> None:
        try:
            run.replicator.run()
        except BaseException as error:  # noqa: BLE001 - handed to the test's thread
            run.raised.append(error)

    thread = Thread(target=target, name="replicator", daemon=True)
    thread.start()
    try:
        yield run
    finally:
        run.replicator.stop()
        thread.join(180)
    assert not thread.is_alive(), "the replicator does not stop"
    if run.raised and not expect:
        raise run.raised[0]


def fill(
    bootstrap: str, topic: str, tag: str, count: int, partitions: int = 2, start: int = 0
) -> None:
    """Write records whose values say where they were written: `tag:number`."""
    numbers = range(start, start + count)
    write(
        bootstrap, topic, [NewRecord(f"{tag}:{n}".encode(), None, n % partitions) for n in numbers]
    )


def texts(
    tag: str, count: int, partitions: int = 2, partition: int = 0, start: int = 0
) -> list[str]:
    """The values that `fill` wrote to one partition, in order."""
    return [f"{tag}:{n}" for n in range(start, start + count) if n % partitions == partition]


def values(records: Sequence[Record]) -> list[str]:
    """The values of records."""
    return [(record.value or b"").decode() for record in records]


def ends(bootstrap: str, topics: Sequence[str]) -> int:
    """How many records some topics take up, markers included; a topic that is not there, or whose
    leader does not know of it yet, counts nothing."""
    there = topics_of(bootstrap)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = {
        TopicPartition(topic, partition): OffsetSpec.latest()
        for topic in topics
        if topic in there
        for partition in range(partition_count(bootstrap, topic))
    }
    answers = admin.list_offsets(asked).values() if asked else ()
    return sum(map(_end, answers))


def _end(answer: Future[ListOffsetsResultInfo]) -> int:
    try:
        return int(answer.result().offset)
    except KafkaException as error:
        if error.args[0].code() not in _MADE_JUST_NOW:
            raise
        return 0


_MADE_JUST_NOW = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART)


def assert_mapped(
    lake: Lake,
    flow: str,
    source: Sequence[Sequence[Record]],
    topic: str,
    target: Sequence[Sequence[Record]],
) -> int:
    """The map of a topic is exact: every pair names the same record on both sides, none twice.
    Returns how many."""
    count = 0
    for partition, records in enumerate(source):
        there = {record.offset: record.value for record in records}
        here = {record.offset: record.value for record in target[partition]}
        pairs = map_pairs(lake, flow, topic, partition)
        assert len({one for one, _ in pairs}) == len({other for _, other in pairs}) == len(pairs), (
            flow,
            topic,
        )
        for one, other in pairs:
            assert there[one] == here[other], (flow, topic, partition, one, other)
        count += len(pairs)
    return count


def map_pairs(
    lake: Lake, flow: str, topic: str, partition: int, generation: int = 0
) -> list[tuple[int, int]]:
    """The (source, target) offsets that the map holds."""
    rows = now_of(lake).rows(
        "SELECT source_first, stride, target_first, record_count FROM offset_translation WHERE "
        "flow = :flow AND topic = :topic AND partition = :partition AND generation = :generation",
        {"flow": flow, "topic": topic, "partition": partition, "generation": generation},
    )
    return sorted(
        (row["source_first"] + k * row["stride"], row["target_first"] + k)
        for row in rows
        for k in range(row["record_count"])
    )


def staged_count(lake: Lake, topic: str) -> tuple[int, int]:
    """How many rows the stage has of a topic, and how many different records."""
    (row,) = now_of(lake).rows(
        "SELECT count(*) AS rows, count(DISTINCT generation, partition, offset) AS records FROM "
        "records WHERE topic = :topic",
        {"topic": topic},
    )
    return row["rows"], row["records"]


def read_all(bootstrap: str, topics: Sequence[str]) -> Mapping[str, list[list[Record]]]:
    """All of some topics, per partition."""
    return read_topics(bootstrap, topics)
