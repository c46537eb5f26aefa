"""A plain Spark job to compare mirrorlake with. It uses mirrorlake's tuned local session, so that
its cost is its work and not a stock setting.

    python -m mirrorlake.devtools.bench.plain_spark SERVERS TOPIC TABLE_PATH CHECKPOINT_PATH

lands one topic in Delta until it is ended, as many teams do beside MirrorMaker 2.
"""

import sys

from mirrorlake.spark.jars import connector_jars
from mirrorlake.spark.session import local_session


def land(servers: str, topic: str, table: str, checkpoint: str) -> None:
    """Land the topic until this process is ended."""
    stream = local_session(more_jars=connector_jars()).readStream.format("kafka")
    rows = stream.options(**kafka_options(servers, topic, "read_uncommitted")).load()
    query = rows.writeStream.format("delta").option("checkpointLocation", checkpoint).start(table)
    query.awaitTermination()


def kafka_options(servers: str, topic: str, isolation: str) -> dict[str, str]:
    """The options of Spark's Kafka source for a whole topic."""
    return {
        "kafka.bootstrap.servers": servers,
        "kafka.isolation.level": isolation,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
    }


if __name__ == "__main__":
    land(*sys.argv[1:])
