"""Plain Spark jobs to compare mirrorlake with. They use its tuned local session, so that their cost
is their work and not a stock setting.

    python -m mirrorlake.devtools.bench.plain_spark land SERVERS TOPIC TABLE_PATH CHECKPOINT_PATH

lands one topic in Delta until it is ended, as many teams do beside MirrorMaker 2.

    python -m mirrorlake.devtools.bench.plain_spark read SOURCE TOPIC TARGET TARGET_TOPIC TABLE_PATH

reads what `verify` compares, a topic of two clusters and a Delta table, and discards it. It
compares nothing: a comparison on Spark would take at least as long.
"""

import sys
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from mirrorlake.spark.jars import connector_jars
from mirrorlake.spark.session import local_session


def land(servers: str, topic: str, table: str, checkpoint: str) -> None:
    """Land the topic until this process is ended."""
    rows = _topic(_session(), servers, topic, stream=True)
    query = rows.writeStream.format("delta").option("checkpointLocation", checkpoint).start(table)
    query.awaitTermination()


def read(source: str, topic: str, target: str, target_topic: str, table: str) -> None:
    """Read all three once."""
    spark = _session()
    stage = spark.read.format("delta").load(table)
    for frame in (_topic(spark, source, topic), stage, _topic(spark, target, target_topic)):
        # reads every column and keeps none
        frame.write.format("noop").mode("overwrite").save()


def _session() -> SparkSession:
    return local_session(more_jars=connector_jars())


def _topic(spark: SparkSession, servers: str, topic: str, stream: bool = False) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": servers,
        "kafka.isolation.level": "read_uncommitted" if stream else "read_committed",
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
    }
    reader = spark.readStream if stream else spark.read
    return reader.format("kafka").options(**options).load()


if __name__ == "__main__":
    job: Callable[..., None] = land if sys.argv[1] == "land" else read
    job(*sys.argv[2:])
