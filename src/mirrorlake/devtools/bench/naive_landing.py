"""A plain Spark job that lands one topic in Delta, as many teams run one beside MirrorMaker 2.

    python -m mirrorlake.devtools.bench.naive_landing \
        BOOTSTRAP_SERVERS TOPIC TABLE_PATH CHECKPOINT_PATH

It has mirrorlake's tuned local session, so that what it costs is the landing and not a stock
setting.
"""

import sys

from mirrorlake.spark.jars import connector_jars
from mirrorlake.spark.session import local_session


def main(bootstrap_servers: str, topic: str, table: str, checkpoint: str) -> None:
    """Land the topic until this process is ended."""
    spark = local_session(more_jars=connector_jars())
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
    )
    query = source.writeStream.format("delta").option("checkpointLocation", checkpoint).start(table)
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
