"""A stage in a place whose files the workers cannot open themselves: Spark reads it, whatever
opening them does. And one of which a file gives fewer records than were landed."""

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession

from mirrorlake.produce import flow
from mirrorlake.produce.batch import BatchPlan
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake, open_incidents
from tests.support.kafka import create_topic, numbered, read_topic, write
from tests.support.lanes import LANES
from tests.support.replication import FLOW, assert_same, replicate_once, write_topology

#: Arrow's Azure client looks for credentials, finds none, and ends the process by an exception that
#: nobody catches; its S3 client raises an OSError that is none of the more telling ones; the last
#: scheme it does not know.
PLACES = ("abfss://container@account.dfs.core.windows.net", "s3://bucket", "s3n://bucket")


def moved_to(place: str) -> Callable[..., BatchPlan]:
    """Plans of batches as they are where the lake's files are named so."""
    plan_batch = flow.plan_batch

    def plan(*arguments: object, **options: object) -> BatchPlan:
        found = plan_batch(*arguments, **options)  # type: ignore[arg-type]
        shards = [
            replace(shard, files=tuple(f"{place}{path}" for path in shard.files))
            for shard in found.shards
        ]
        return replace(found, shards=tuple(shards))

    return plan


@pytest.mark.slow
def test_spark_reads_what_workers_cannot_open(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    for name, value in nobody.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    topic = f"unreadable-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.east, topic, 2)
    # Of a folder small batches are read by this process, whose lake never has such names.
    by_tasks = {"small_batch_records": 0}
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic]}, by_tasks)
    for number, place in enumerate(PLACES):
        write(clusters.east, topic, numbered(500, 2, 500 * number))
        with monkeypatch.context() as patch:
            patch.setattr(flow, "plan_batch", moved_to(place))
            run = replicate_once(spark, topology)
        assert run.readers == {"rows"}, place
    assert_same(run.lake, clusters.east, clusters.west, {topic: f"east.{topic}"}, 500 * len(PLACES))


@pytest.mark.wide(
    "simulation/test_found.py::test_a_reader_that_gives_less_of_a_range_with_gaps_that_a_batch_cuts_is_noticed"
)
@pytest.mark.usefixtures("lane")
@pytest.mark.parametrize("lane", LANES, indirect=True)
def test_a_file_that_gives_fewer_records_ends_the_run_which_says_so(
    clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    """Nothing behind the ones that are missing is taken for brought; once the file is back, all
    is."""
    create_topic(clusters.east, topic_name, 2)
    write(clusters.east, topic_name, numbered(100, 2))
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [topic_name], "paused": True}
    )
    mirrorlake(topology, "run", "--once")  # lands only
    (file,) = (tmp_path / "lake" / "records").glob("*.parquet")
    whole = file.read_bytes()
    missing = (pc.field("partition") == 0) & (pc.field("offset") == 20)
    pq.write_table(pq.read_table(file).filter(~missing), file)
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["flows"][FLOW]["paused"] = False
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    for _ in range(2):  # trying again does not get used to it
        mirrorlake(topology, "run", "--once", code=1)
        told = open_incidents(topology, code=1)
        assert [(kind, topic, partition) for kind, topic, partition, *_ in told] == [
            ("map_contradiction", topic_name, 0)
        ]
    assert len(read_topic(clusters.west, f"east.{topic_name}")[0]) <= 20
    file.write_bytes(whole)
    mirrorlake(topology, "resolve", "--topic", topic_name, "--choice", "acknowledge")
    mirrorlake(topology, "run", "--once")
    assert open_incidents(topology, code=0) == []
    there, here = (
        read_topic(clusters.east, topic_name),
        read_topic(clusters.west, f"east.{topic_name}"),
    )
    assert [[record.value for record in part] for part in here] == [
        [record.value for record in part] for part in there
    ]
