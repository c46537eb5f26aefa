"""One batch of Spark's Kafka source into `records`, where records cannot be read natively
(`landing/native_sink.py`): a small one is committed by the driver itself, a larger one by Spark's
tasks.

A batch that Spark writes costs 2 CPU seconds whatever it holds; one that the driver takes as Arrow
and commits by delta-rs costs a tenth. Both name the same application and the number of the batch,
so that a batch is in the table once, whichever way it went and however often it is tried.
"""

import logging
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from mirrorlake import failpoints
from mirrorlake.config.topology import Landing
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.small_batches import SmallBatches
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.spark.query_files import read_position

logger = logging.getLogger(__name__)

_ORDER = [(name, "ascending") for name in ("topic", "partition", "offset")]
#: Spark's name of the error that the driver was sent more than it takes
#: (spark.driver.maxResultSize).
_TOO_MUCH = "maxResultSize"


class StageSink:
    """`foreachBatch` of one landing query. `application` is what its commits are known by,
    `checkpoint` its directory, and `starts` are the offsets at which it begins."""

    def __init__(
        self,
        lake: PathLake,
        landing: Landing,
        application: str,
        checkpoint: Path,
        starts: dict[TopicAndPartition, int],
    ) -> None:
        self._lake = lake
        self._small = SmallBatches(landing.small_batch_records)
        self._application = application
        self._checkpoint = checkpoint
        self._before = dict(starts)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Commit a batch."""
        rows = self._taken(frame) if self._count(batch) <= self._small.max_records else None
        if rows is None:
            writer = (
                frame.write.format("delta").mode("append").option("txnAppId", self._application)
            )
            writer.option("txnVersion", str(batch)).saveAsTable(self._lake.name("records"))
        elif rows.num_rows:
            failpoints.reached("taken")
            self._lake.tables.append("records", rows.sort_by(_ORDER), self._application, batch)
        failpoints.reached("landed")

    def _taken(self, frame: DataFrame) -> pa.Table | None:
        """The rows of a batch; None where they are more than the driver takes."""
        try:
            rows = frame.toArrow()
        except PySparkException as error:
            if _TOO_MUCH not in str(error):
                raise
            self._small.overflowed()
            logger.info("a landed batch is too large for the driver: Spark writes it")
            return None
        self._small.learn(rows.num_rows, rows.nbytes)
        return rows

    def _count(self, batch: int) -> int:
        """How many offsets a batch covers, by what Spark noted before it began; some may have no
        record."""
        noted = (self._checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8")
        ends = read_position(batch, noted, {}).sources[0]
        count = sum(end - self._before.get(key, 0) for key, end in ends.items())
        self._before.update(ends)
        return count
