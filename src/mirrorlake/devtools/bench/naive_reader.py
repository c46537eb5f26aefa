"""A plain Spark job that reads what `verify` compares, a topic of two clusters and a Delta table,
and throws it away.

    python -m mirrorlake.devtools.bench.naive_reader SOURCE TOPIC TARGET TARGET_TOPIC TABLE_PATH

It compares nothing: what it takes is the least that a comparison on Spark would take.
"""

import sys

from pyspark.sql import DataFrame, SparkSession

from mirrorlake.spark.jars import connector_jars
from mirrorlake.spark.session import local_session


def main(source: str, topic: str, target: str, target_topic: str, table: str) -> None:
    """Read all three once."""
    spark = local_session(more_jars=connector_jars())
    stage = spark.read.format("delta").load(table)
    for frame in (_topic(spark, source, topic), stage, _topic(spark, target, target_topic)):
        # every column is read, and none is kept
        frame.write.format("noop").mode("overwrite").save()


def _topic(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
