"""Starts landing natively: a streaming query, or, of few records and with an end, none at all."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException

from mirrorlake.config.topology import Landing
from mirrorlake.errors import StagingError
from mirrorlake.extras import needs
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.landing.checkpoints import is_fenced
from mirrorlake.landing.job import LandJob
from mirrorlake.landing.native_sink import NativeSink, Ranges
from mirrorlake.landing.query import LandingQuery
from mirrorlake.offsets.as_of import noted_ends
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges


def land_natively(
    lake: PathLake, job: LandJob, landing: Landing, application: str, once: bool
) -> LandingQuery:
    """Start landing what a job says; `once` to the ends that the source has now.

    Raises ClusterUnreachable: `once`, and the source does not report its ends.
    """
    sink = NativeSink(lake.tables, job, application, landing.small_batch_records)
    fenced = partial(is_fenced, lake, application)
    if not once:
        return _start(lake, job, landing, sink, final=None, fenced=fenced)
    admin = ClusterAdmin(job.alias, job.client)
    final = admin.end_offsets(job.starts, committed=True)
    noted = noted_ends(final, admin.end_offsets(list(final), committed=False, skip_silent=True))
    ranges = {key: (job.starts[key], end) for key, end in final.items() if end > job.starts[key]}
    in_one_batch = (
        sum(end - first for first, end in ranges.values()) <= landing.max_records_per_batch
    )
    if in_one_batch and sink.is_small(ranges):
        return _LandedAtOnce(sink, ranges, Path(job.checkpoint), noted, fenced)
    return _start(
        lake,
        replace(job, final=final, final_noted=noted),
        landing,
        sink,
        final={key: end for key, (_, end) in ranges.items()},
        fenced=fenced,
    )


def _start(
    lake: PathLake,
    job: LandJob,
    landing: Landing,
    sink: NativeSink,
    final: Mapping[TopicAndPartition, int] | None,
    fenced: Callable[[], bool],
) -> LandingQuery:
    """One query for all partitions: which of them wait for others is decided for each batch."""
    with needs("spark"):
        from mirrorlake.landing.native_source import source_of

    source = source_of(job)
    lake.spark.dataSource.register(source)
    checkpoint = Path(job.checkpoint)
    writer = lake.spark.readStream.format(source.name()).load().writeStream
    writer = writer.queryName(f"land {job.alias} {lake.lake_id} {checkpoint.name}")
    writer = writer.option("checkpointLocation", job.checkpoint).foreachBatch(sink)
    writer = writer.trigger(processingTime=f"{landing.trigger_ms} milliseconds")
    return LandingQuery(
        writer.start(),
        final=final,
        close=sink.close,
        fenced=fenced,
        stop_after_batch=sink.stop_after_batch,
    )


def land_again_natively(
    tables: PathTables,
    job: LandJob,
    ends: Mapping[TopicAndPartition, int],
    forgotten: Mapping[TopicAndPartition, OffsetRanges],
    application: str,
) -> None:
    """Land few offsets of a job, up to `ends`, without those that are `forgotten` (inclusive), in
    the one commit of an application. Raises KafkaException."""
    sink = NativeSink(tables, job, application, 0)
    try:
        sink.read_here(
            {key: (job.starts[key], end) for key, end in ends.items()}, 1, None, forgotten
        )
    finally:
        sink.close()


class _LandedAtOnce(LandingQuery):
    """Few records up to an end, landed by the driver while it is made: a query would take seconds
    to begin."""

    def __init__(
        self,
        sink: NativeSink,
        ranges: Ranges,
        checkpoint: Path,
        noted: str | None,
        fenced: Callable[[], bool],
    ) -> None:
        super().__init__(close=sink.close, fenced=fenced)
        self._covered = {key: end for key, (_, end) in ranges.items()}
        self._error: Exception | None = None
        # Where the next landing finds the name of what may still commit (`land.end_queries`).
        checkpoint.mkdir(parents=True, exist_ok=True)
        try:
            with sink.paced():
                sink.read_here(ranges, 0, noted)
        except (KafkaException, StagingError) as error:
            self._covered = {}
            self._error = error

    @property
    def active(self) -> bool:
        """It is over."""
        return False

    @property
    def began(self) -> bool:
        """Whether it came to its end."""
        return self._error is None

    def exception(self) -> Exception | None:
        """Why it did not."""
        return self._error

    def covered(self) -> dict[TopicAndPartition, int]:
        """How far each partition was landed."""
        return self._covered
