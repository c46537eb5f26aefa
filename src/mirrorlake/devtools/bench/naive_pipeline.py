"""Kafka to Delta to Kafka with Spark's own sinks: two streaming queries in default settings, as
people write them.

    python -m mirrorlake.devtools.bench.naive_pipeline \
        SOURCE_SERVERS TOPIC TARGET_SERVERS TARGET_TOPIC DIRECTORY

The session is a stock Delta session: the extension and the catalog, nothing of mirrorlake's tuning.
What is written is at least once, without the source's timestamps, and without a map of offsets.
"""

import os
import sys

from pyspark.sql import SparkSession

from mirrorlake.spark.jars import connector_jars, spark_jars
from mirrorlake.spark.java import java_home


def stock_session() -> SparkSession:
    """Build a Delta session as Delta's documentation says, on this machine's cores."""
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[*]")
        .appName("naive pipeline")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.jars", ",".join(str(jar) for jar in (*spark_jars(), *connector_jars())))
        # About this machine and not about speed: no port of the web page, no name lookup.
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )


def main(source: str, topic: str, target: str, target_topic: str, directory: str) -> None:
    """Run both queries until this process is ended or one of them fails."""
    spark = stock_session()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", source)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
    )
    table = f"{directory}/table"
    spark.createDataFrame([], records.schema).write.format("delta").mode("ignore").save(table)
    records.writeStream.format("delta").option(
        "checkpointLocation", f"{directory}/checkpoints/land"
    ).start(table)
    (
        spark.readStream.format("delta")
        .load(table)
        .select("key", "value", "headers", "partition")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", target)
        .option("topic", target_topic)
        .option("checkpointLocation", f"{directory}/checkpoints/produce")
        .start()
    )
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
