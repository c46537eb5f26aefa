"""Does ahead of time what a landing query has a session do for the first time: Java loads its
classes, and Python's processes start."""

from pathlib import Path

from pyspark.sql import SparkSession

from mirrorlake.spark.session import unchanged


def rehearse(spark: SparkSession, directory: Path) -> None:
    """Stream some numbers, and hand each batch to Python workers, as landing and producing do. The
    files in `directory` are not needed afterwards. Raises Spark's errors."""
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    query = numbers.writeStream.foreachBatch(
        lambda batch, _number: batch.mapInArrow(unchanged, batch.schema).toArrow()
    )
    query = query.option("checkpointLocation", str(directory / "copied-on"))
    query.trigger(availableNow=True).start().awaitTermination()
