"""What sessions mostly do, done once, so that Java's archive holds the classes it takes.

Run by `spark/class_archive.py` as a process of its own; what it makes is thrown away.
"""

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from mirrorlake.spark.session import local_session, unchanged


def warm_up(directory: Path) -> None:
    """Stream, and hand each batch to Python workers, as landing and producing do; read files."""
    spark = local_session("2", short=True, delta=False)
    rehearse(spark, directory)
    spark.range(2).write.parquet(str(directory / "numbers"))
    rows = spark.read.parquet(str(directory / "numbers"))
    rows.join(spark.createDataFrame([(1,)], "id bigint"), "id").sort("id").collect()
    spark.stop()


def rehearse(spark: SparkSession, directory: Path) -> None:
    """Do what a landing query has a session do for the first time: Java loads its classes, and
    Python's processes start. Streams some numbers, and hands each batch to Python workers, as
    landing and producing do. The files in `directory` are not needed afterwards. Raises Spark's
    errors."""
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    query = numbers.writeStream.foreachBatch(
        lambda batch, _number: batch.mapInArrow(unchanged, batch.schema).toArrow()
    )
    query = query.option("checkpointLocation", str(directory / "copied-on"))
    query.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="mirrorlake-warmup-") as folder:
        warm_up(Path(folder))
