"""What a target refuses, and would take sent in another way, or takes a moment later: nobody has to
decide about it."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.run import control_loop
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake
from tests.support.control import set_configs
from tests.support.kafka import NewRecord, create_topic, numbered, read_topic, write
from tests.support.lake_rows import now_of
from tests.support.lanes import BOTH_LANES
from tests.support.replication import FLOW, replicating, write_topology
from tests.support.waiting import until

pytestmark = BOTH_LANES
#: Half as large by zstd, which fits into a broker's default of 1 MiB, and as large as it is by lz4,
#: which does not.
DENSE = os.urandom(700_000).hex().encode()


@pytest.mark.parametrize(
    "compression",
    [
        None,
        pytest.param(
            "lz4",
            marks=pytest.mark.wide("test_a_record_that_the_source_took_by_a_denser_codec_arrives"),
        ),
    ],
)
def test_a_record_that_the_source_took_by_a_denser_codec_arrives(
    clusters: ClusterPair, tmp_path: Path, topic_name: str, compression: str | None
) -> None:
    create_topic(clusters.east, topic_name, 2)
    dense = [NewRecord(DENSE, partition=partition) for partition in (0, 1)]
    sent = [*numbered(20, 2), *dense, *numbered(20, 2, 20)]
    write(clusters.east, topic_name, sent, compression_type="zstd", message_max_bytes=4_000_000)
    flow = {"topics": [topic_name], **({} if compression is None else {"compression": compression})}
    topology = write_topology(tmp_path, clusters.east, clusters.west, flow)
    (planned,) = mirrorlake(topology, "plan")["flows"]
    assert planned["compression"] == "lz4"
    mirrorlake(topology, "run", "--once", code=0 if compression is None else 1)
    there, here = (
        read_topic(clusters.east, topic_name),
        read_topic(clusters.west, f"east.{topic_name}"),
    )
    if compression is None:
        assert [[record.value for record in part] for part in here] == [
            [record.value for record in part] for part in there
        ]
        return
    told = mirrorlake(topology, "status", code=1)["incidents"]
    assert {(item["kind"], item["partition"]) for item in told} == {
        ("target_refused", 0),
        ("target_refused", 1),
    }
    assert all("compressed by lz4" in item["detail"] for item in told)
    assert [len(part) for part in here] == [10, 10]


@pytest.mark.wide("test_a_record_that_the_source_took_by_a_denser_codec_arrives")
@pytest.mark.parametrize("where", ["source", "target"])
def test_a_partition_goes_on_by_itself_when_its_topics_limit_was_raised(
    spark: SparkSession,
    clusters: ClusterPair,
    tmp_path: Path,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
) -> None:
    """At the target by hand, or at the source within the second in which the larger record
    comes."""
    monkeypatch.setattr(control_loop, "CHECK_SECONDS", 1.0)
    mirror = f"east.{topic_name}"
    create_topic(clusters.east, topic_name, max_message_bytes="5000")
    flow = {"topics": [topic_name], "sync_topic_configs_enabled": where == "source"}
    topology = write_topology(tmp_path, clusters.east, clusters.west, flow)
    write(clusters.east, topic_name, numbered(3))
    with replicating(spark, topology) as run:

        def arrived(count: int) -> bool:
            return [len(part) for part in read_topic(clusters.west, mirror)] == [count]

        until(lambda: arrived(3), "the first records are there")
        if where == "target":
            set_configs(clusters.west, mirror, {"max.message.bytes": "5000"})
        set_configs(clusters.east, topic_name, {"max.message.bytes": "100000"})
        write(clusters.east, topic_name, [NewRecord(os.urandom(50_000)), *numbered(3)])
        reader = now_of(run.lake)
        if where == "target":
            until(
                lambda: bool(now_of(run.lake).table_rows("open_incidents")), "the record is refused"
            )
            set_configs(clusters.west, mirror, {"max.message.bytes": "100000"})
        until(lambda: arrived(7), "the larger record is there, and what is behind it", 60)
        until(lambda: not now_of(run.lake).table_rows("open_incidents"), "nobody waits any more")
        assert not reader.rows(
            f"SELECT * FROM incidents WHERE flow = '{FLOW}' AND resolution = 'retry'"
        )
