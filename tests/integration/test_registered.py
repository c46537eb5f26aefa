"""A lake at a path with names in a catalog: records are landed, mapped and answered about without
Spark, and who asks the catalog sees the same, without anything being registered again."""

from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from pyspark.sql import SparkSession

import mirrorlake
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake as command
from tests.support.kafka import create_topic, numbered, read_topic, write
from tests.support.replication import write_topology

PARTITIONS = 2


@pytest.mark.slow
@pytest.mark.law("stage first", "exact map", session="without")
def test_the_catalog_shows_what_is_landed_without_spark(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    place = {"catalog": "spark_catalog", "schema": f"l{uuid4().hex[:8]}"}
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["lake"] |= place
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    create_topic(clusters.east, topic_name, PARTITIONS)
    for times in (1, 2):
        write(clusters.east, topic_name, numbered(20, PARTITIONS, 20 * (times - 1)))
        command(topology, "run", "--once")
        if times == 1:
            mirrorlake.open(topology, spark=spark).register()
        seen = mirrorlake.open(**place, spark=spark)  # type: ignore[arg-type]
        rows = seen.table("records").select("partition", "offset", "key", "value").collect()
        source = read_topic(clusters.east, topic_name)
        staged = {(row[0], row[1], bytes(row[2]), bytes(row[3])) for row in rows}
        assert len(rows) == 20 * times and staged == {
            (partition, record.offset, record.key, record.value)
            for partition, records in enumerate(source)
            for record in records
        }
    target = read_topic(clusters.west, f"east.{topic_name}")
    pairs = {
        (topic_name, partition, here.offset): (there.offset, True)
        for partition, records in enumerate(source)
        for here, there in zip(records, target[partition], strict=True)
    }
    found = seen.translate_all("east->west", pairs)
    assert {key: (to.offset, to.exact) for key, to in found.items()} == pairs
    status = command(topology, "status")
    assert status["healthy"] and status["warnings"] == []
    assert seen.table("flow_status").count() == 1
    spark.sql(f"DROP SCHEMA {place['catalog']}.{place['schema']} CASCADE")
    assert command(topology, "verify")["proven"] == 40, "names are no tables"
