"""What landing costs does not grow with its batches."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.lake.session import settings_for_now
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, write
from tests.support.replication import land_only, write_topology


@pytest.mark.slow
def test_no_batch_compiles_code_of_its_own(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """The time of a batch, were it a literal in generated code, would make two new classes of every batch."""
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [topic_name]}, {"max_records_per_batch": 100}
    )
    create_topic(clusters.east, topic_name, 1)
    generated = {"spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.codegen.wholeStage": "true"}
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    counts = []
    with settings_for_now(spark, generated):
        for batches in (1, 1, 21):
            write(clusters.east, topic_name, numbered(100 * batches, 1))
            counted = compiled.getCount()
            land_only(spark, topology)
            counts.append(compiled.getCount() - counted)
    assert counts[0] > 0 and counts[2] - counts[1] < 20, counts
