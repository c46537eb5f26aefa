"""Has a session with Delta work on tables of a Hive metastore: Java's class archive gets the
classes.

Run by `spark/class_archive.py` in its own process; its data is thrown away.
"""

import tempfile
from datetime import datetime, timezone
from pathlib import Path

from mirrorlake.config.lake import Lake as Location
from mirrorlake.devtools.local.metastore import hive_metastore
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.warmup import rehearse
from mirrorlake.spark.session import local_session

_NAME = "warmup"
_START = {"flow": _NAME, "topic": _NAME, "partition": 0, "generation": 0, "first_offset": 1}


def warm_up(directory: Path) -> None:
    """Make a lake's tables, write to one and read it, and stream into another."""
    with hive_metastore(directory) as metastore:
        spark = local_session("2", metastore.session)
        rehearse(spark, directory)
        location = Location.model_validate(metastore.lake(_NAME, directory / "state"))
        lake = open_lake(spark, location, directory)
        start = {**_START, "asked": "latest", "noted_at": datetime.now(timezone.utc)}
        for _ in range(3):
            lake.append("starts", rows_of("starts", [start]))
            lake.ask_table("starts")
        numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        writer = numbers.writeStream.format("delta").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(directory / "streamed"))
        writer.toTable(lake.name("streamed")).awaitTermination()
        spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        warm_up(Path(folder))
