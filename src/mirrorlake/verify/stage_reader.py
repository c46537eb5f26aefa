"""Reading a range of offsets of one partition from the stage's files, in whatever order they hold
it. The files are those of a committed snapshot, without deletion vectors and column mapping
(`produce/stage_files.py`)."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.lake.parquet import RARE
from mirrorlake.produce.batch import PartitionPlan, ShardPlan
from mirrorlake.produce.encoding import RECORDS, as_records
from mirrorlake.produce.stage_files import COORDINATES, batches_of


def read_stage(shard: ShardPlan, plan: PartitionPlan) -> Iterator[pa.RecordBatch]:
    """The staged records of a range, as RECORDS. Raises FilesUnreadable; FileNotFoundError for a
    file that is gone."""
    columns = [*COORDINATES, *RECORDS.names[1:], *RARE]
    for batch in batches_of(shard, {plan.key: plan}, columns):
        rows = as_records(_inside(batch, shard.source_cluster, plan))
        if rows.num_rows:
            yield rows


def _inside(batch: pa.RecordBatch, source_cluster: str, plan: PartitionPlan) -> pa.RecordBatch:
    offsets = batch.column("offset")
    wanted = pc.and_(pc.greater_equal(offsets, plan.first), pc.less_equal(offsets, plan.last))
    place = {"source_cluster": source_cluster, "topic": plan.topic, "partition": plan.partition}
    for name, value in place.items():
        wanted = pc.and_(wanted, pc.equal(batch.column(name), value))
    wanted = pc.and_(wanted, pc.equal(pc.fill_null(batch.column("generation"), 0), plan.generation))
    return batch.filter(wanted)
