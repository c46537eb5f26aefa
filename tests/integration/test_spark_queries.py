"""A Structured Streaming query moves to the other cluster and back, and reads each record once."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, create_topic, send, transactional_producer, write
from tests.support.replication import FLOW, replicate_once, write_topology

PARTITIONS = 2


def read(
    spark: SparkSession,
    bootstrap: str,
    sources: Sequence[tuple[str, str]],
    checkpoint: Path,
    fail: bool = False,
) -> Counter[bytes]:
    """All values that a query of some sources, each a topic and its startingOffsets, reads up to
    the ends.

    With `fail` its batch fails when it has read.
    """
    seen: Counter[bytes] = Counter()

    def take(frame: DataFrame, _batch: int) -> None:
        seen.update(bytes(row["value"]) for row in frame.collect())
        if fail:
            raise RuntimeError("killed in the middle of a batch")

    options = {"kafka.bootstrap.servers": bootstrap, "kafka.isolation.level": "read_committed"}
    frames = [
        spark.readStream.format("kafka")
        .options(**options)
        .option("subscribe", topic)
        .option("startingOffsets", starts)
        for topic, starts in sources
    ]
    union = frames[0].load().select("value")
    for frame in frames[1:]:
        union = union.union(frame.load().select("value"))
    writer = union.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination(120)
    return seen


def fill(clusters: ClusterPair, topics: tuple[str, str], tag: str, count: int) -> Counter[bytes]:
    """Write to both topics, to the first in transactions of which some are aborted; returns what
    can be read."""
    values = [f"{tag}{number}".encode() for number in range(count)]
    producer = transactional_producer(clusters.east)
    for number in range(0, count, 5):
        for commit in (False, True) if number % 3 == 0 else (True,):
            producer.begin_transaction()
            for value in values[number : number + 5]:
                send(producer, topics[0], NewRecord(value, partition=int(value[1:]) % PARTITIONS))
            producer.flush(30)
            producer.commit_transaction(30) if commit else producer.abort_transaction(30)
    write(clusters.east, topics[1], [NewRecord(b"plain " + value) for value in values])
    return Counter(values) + Counter(b"plain " + value for value in values)


def translated(
    topology: Path, checkpoint: Path, *flags: str, code: int = 0
) -> list[tuple[str, str]]:
    """What `translate-checkpoint` says: for each source its topic and its startingOffsets."""
    command = ["-c", str(topology), "translate-checkpoint", str(checkpoint), "--flow", FLOW, *flags]
    before = files(checkpoint)
    result = CliRunner().invoke(app, command)
    assert result.exit_code == code, (result.output, result.exception)
    assert files(checkpoint) == before, "the checkpoint is only read"
    lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
    return [(",".join(json.loads(line)), line) for line in lines]


def files(folder: Path) -> Mapping[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_there_and_back(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    topics = (topic_name, f"{topic_name}-plain")
    create_topic(clusters.east, topics[0], PARTITIONS)
    create_topic(clusters.east, topics[1])
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": list(topics)})
    at_east, at_west = tmp_path / "query-east", tmp_path / "query-west"

    first = fill(clusters, topics, "a", 40)
    earliest = [(topic, "earliest") for topic in topics]
    assert read(spark, clusters.east, earliest, at_east) == first
    replicate_once(spark, topology)
    second = fill(clusters, topics, "b", 23)
    with pytest.raises(StreamingQueryException):
        read(spark, clusters.east, earliest, at_east, fail=True)
    replicate_once(spark, topology)

    starts = translated(topology, at_east)
    assert [topic for topic, _ in starts] == [f"east.{topic}" for topic in topics]
    assert read(spark, clusters.west, starts, at_west) == second, (
        "the batch that was not committed, and nothing else"
    )

    third = fill(clusters, topics, "c", 31)
    home = translated(topology, at_west, "--reverse")
    assert [topic for topic, _ in home] == list(topics)
    assert read(spark, clusters.east, home, tmp_path / "query-home") == third

    # What the query at home has read and the flow has not mirrored yet is named.
    ahead = translated(topology, tmp_path / "query-home", code=1)
    assert [topic for topic, _ in ahead] == [f"east.{topic}" for topic in topics]
    replicate_once(spark, topology)
    caught_up = translated(topology, tmp_path / "query-home")
    assert read(spark, clusters.west, caught_up, tmp_path / "query-end") == Counter()
