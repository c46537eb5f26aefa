"""What sessions mostly do, done once, so that Java's archive holds the classes it takes.

Run by `spark/class_archive.py` as a process of its own; what it makes is thrown away.
"""

import tempfile
from pathlib import Path

from mirrorlake.spark.rehearsal import rehearse
from mirrorlake.spark.session import local_session


def warm_up(directory: Path) -> None:
    """Stream, and hand each batch to Python workers, as landing and producing do; read files."""
    spark = local_session("2", short=True, delta=False)
    rehearse(spark, directory)
    spark.range(2).write.parquet(str(directory / "numbers"))
    rows = spark.read.parquet(str(directory / "numbers"))
    rows.join(spark.createDataFrame([(1,)], "id bigint"), "id").sort("id").collect()
    spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="mirrorlake-warmup-") as folder:
        warm_up(Path(folder))
