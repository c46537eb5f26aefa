"""Run as a program: land, produce and translate once in a Spark session of another kind; prints
what it saw as JSON.

Usage: python -m tests.support.elsewhere {connect|cluster} TOPOLOGY FLOW TOPIC
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.translate import translate
from mirrorlake.run.options import RunOptions
from mirrorlake.run.replicator import Replicator
from mirrorlake.spark.class_archive import SESSIONS, archive_flags
from mirrorlake.spark.jars import spark_jars
from mirrorlake.spark.java import find_java
from mirrorlake.spark.session import (
    DELTA_SETTINGS,
    LOCAL_SETTINGS,
    OPTIMISE_NEVER,
    SHORT_SETTINGS,
    local_session,
)

#: What is compared of a translated position.
PLACE = ("topic", "partition", "offset", "exact")
#: How executors in processes of their own, which do little, do it with less CPU.
EXECUTORS = {"spark.executor.extraJavaOptions": " ".join(OPTIMISE_NEVER)}


def short_settings() -> dict[str, str]:
    """Settings of a session that others start than `local_session`: with little to do, as these
    tests have it."""
    flags = " ".join([*OPTIMISE_NEVER, *archive_flags(SESSIONS, find_java())])
    own = {"spark.driver.extraJavaOptions": flags, **EXECUTORS}
    return {**LOCAL_SETTINGS, **DELTA_SETTINGS, **SHORT_SETTINGS, **own}


def connect_session() -> SparkSession:
    """A local Spark Connect server, from the pip package, and its client."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the server runs here, and so do its workers
    builder = SparkSession.builder.remote("local[2]")
    settings = short_settings()
    if events := os.environ.get("MIRRORLAKE_TEST_EVENTS"):
        settings |= {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": events,
        }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.config("spark.jars", ",".join(str(jar) for jar in spark_jars())).getOrCreate()


def main(kind: str, topology_file: str, flow: str, topic: str) -> None:
    if kind == "connect":
        spark = connect_session()
    else:
        spark = local_session("local-cluster[2,1,1024]", settings=EXECUTORS)
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
    # Asked by the session, which is what these tests are about; in a store it reads no table.
    reader: Reader = lake.now if lake.in_store else lake
    there = translate(reader, flow, topic, 0, 7)
    back = translate(reader, flow, there.topic, 0, there.offset, reverse=True)
    count = "SELECT count(*) AS n FROM records"
    mapped = "SELECT sum(record_count) AS n FROM offset_map"
    seen = {
        "session": type(spark).__module__,
        "readers": reports,
        "staged": reader.rows(count)[0]["n"],
        "mapped": int(reader.rows(mapped)[0]["n"]),
        "there": {name: getattr(there, name) for name in PLACE},
        "back": {name: getattr(back, name) for name in PLACE},
    }
    sys.stdout.write(json.dumps(seen) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
