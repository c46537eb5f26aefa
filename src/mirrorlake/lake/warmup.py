"""What sessions mostly do, done once on an empty lake, so that Java's archive holds the classes it
takes.

Run by `spark/class_archive.py` as a process of its own; what it makes is thrown away.
"""

import tempfile
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from mirrorlake.config.topology import Lake as Location
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.translate import translate_all
from mirrorlake.spark.session import local_session, unchanged

FLOW = "east->west"


def warm_up(directory: Path) -> None:
    """Open a lake, append to it, stream from it, translate, and read its view of views."""
    lake = open_lake(local_session("2", short=True), Location(path="./lake"), directory)
    lake.append(
        "latency", pa.table({"flow": [FLOW], "topic": ["orders"], "batch_id": [0]}), "warmup", 1
    )
    lake.append("changes", pa.table({"flow": [FLOW], "detail": ["warmup"]}))
    _stream(lake, directory)
    translate_all(lake, FLOW, [("orders", 0, 0)])
    lake.table("flow_status").collect()
    lake.spark.stop()


def _stream(lake: Lake, directory: Path) -> None:
    """Queries over a table: one hands each batch to Python workers, as producing does, one writes a
    table."""
    table = lake.spark.readStream.table(lake.name("latency"))
    copied_on = table.writeStream.foreachBatch(_copy_on)
    copied = table.writeStream.format("delta").option("path", str(directory / "copy"))
    for name, query in (("copied-on", copied_on), ("copied", copied)):
        query.option("checkpointLocation", str(directory / name)).trigger(
            availableNow=True
        ).start().awaitTermination()


def _copy_on(batch: DataFrame, _number: int) -> None:
    batch.mapInArrow(unchanged, batch.schema).toArrow()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="mirrorlake-warmup-") as folder:
        warm_up(Path(folder))
