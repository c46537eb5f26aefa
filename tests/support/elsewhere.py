"""Run as a program: land, produce and translate once in a Spark session of another kind; prints
what it saw as JSON.

Usage: python -m tests.support.elsewhere {connect|cluster} TOPOLOGY FLOW TOPIC
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.translate import translate
from mirrorlake.run.replicator import Replicator, RunOptions
from mirrorlake.spark.jars import spark_jars
from mirrorlake.spark.session import DELTA_SETTINGS, LOCAL_SETTINGS, REDACTIONS, local_session


def connect_session() -> SparkSession:
    """A local Spark Connect server, from the pip package, and its client."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the server runs here, and so do its workers
    builder = SparkSession.builder.remote("local[2]")
    # As of a server that knows nothing of us: it is told by the session what must not be written
    # down.
    settings = {**LOCAL_SETTINGS, **DELTA_SETTINGS}
    settings = {key: value for key, value in settings.items() if key not in REDACTIONS}
    if events := os.environ.get("MIRRORLAKE_TEST_EVENTS"):
        settings |= {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": events,
        }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.config("spark.jars", ",".join(str(jar) for jar in spark_jars())).getOrCreate()


def read_plainly(spark: SparkSession, options: Mapping[str, str], topic: str) -> None:
    """A stream whose plan is so flat that Spark writes its source's options down: the landing
    query's are too deep, as long as it has as many steps as it has."""
    source = spark.readStream.format("kafka").options(**options).option("subscribe", topic).load()
    with TemporaryDirectory() as checkpoint:
        writer = source.writeStream.format("noop").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()


def main(kind: str, topology_file: str, flow: str, topic: str) -> None:
    spark = connect_session() if kind == "connect" else local_session("local-cluster[2,1,1024]")
    topology = load_topology(Path(topology_file))
    lake = open_lake(spark, topology.lake, topology.directory)
    reports = []
    replicator = Replicator(
        Deployment.opened(lake, Connections(topology)),
        topology.active_flows(),
        RunOptions(once=True),
        report=lambda _name, batch: reports.append(batch.reader),
    )
    replicator.run()
    there = translate(lake, flow, topic, 0, 7)
    back = translate(lake, flow, there.topic, 0, there.offset, reverse=True)
    seen = {
        "session": type(spark).__module__,
        "readers": reports,
        "staged": lake.table("records").count(),
        "mapped": lake.sql("SELECT sum(record_count) AS n FROM offset_map").collect()[0]["n"],
        "there": vars(there),
        "back": vars(back),
    }
    if "MIRRORLAKE_TEST_EVENTS" in os.environ:
        read_plainly(spark, Connections(topology).spark(flow.partition("->")[0]), topic)
    sys.stdout.write(json.dumps(seen) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
