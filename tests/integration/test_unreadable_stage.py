"""A stage in a place whose files the workers cannot open themselves: Spark reads it, whatever
opening them does."""

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.produce import flow
from mirrorlake.produce.batch import BatchPlan
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, write
from tests.support.replication import assert_same, replicate_once, write_topology

#: Arrow's Azure client looks for credentials, finds none, and ends the process by an exception that
#: nobody catches; its S3 client raises an OSError that is none of the more telling ones; the last
#: scheme it does not know.
PLACES = (
    "abfss://container@account.dfs.core.windows.net",
    "s3://bucket",
    "s3n://bucket",
)


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
