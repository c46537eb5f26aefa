"""A plain Spark job that reads what `verify` compares, a topic of two clusters and a Delta table,
and discards it. It compares nothing: a comparison on Spark would take at least as long.

    python -m tests.bench.plain_read SOURCE TOPIC TARGET TARGET_TOPIC TABLE_PATH
"""

import sys

from pyspark.sql import DataFrame

from mirrorlake.devtools.bench.plain_spark import kafka_options
from mirrorlake.spark.jars import connector_jars
from mirrorlake.spark.session import local_session


def read(source: str, topic: str, target: str, target_topic: str, table: str) -> None:
    """Read all three once."""
    spark = local_session(more_jars=connector_jars())

    def rows(servers: str, topic: str) -> DataFrame:
        options = kafka_options(servers, topic, "read_committed")
        return spark.read.format("kafka").options(**options).load()

    stage = spark.read.format("delta").load(table)
    for frame in (rows(source, topic), stage, rows(target, target_topic)):
        # reads every column and keeps none
        frame.write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    read(*sys.argv[1:])
