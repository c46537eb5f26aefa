"""Lands the source topics of one cluster into `records`: one streaming query, for all flows.

Lakes differ in what commits. At a path this process does, by delta-rs: what it has read itself, or
what Spark's tasks wrote. Elsewhere the session's sink commits. Within a query each batch is
committed once. No session is needed before many records have to be landed, unless it is what
commits: until then this process also plans (`driver_query.py`).
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mirrorlake.attempts import attempts
from mirrorlake.config.cluster import Landing
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.lake.definitions import definition
from mirrorlake.lake.forgotten import forgotten_from
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.landing.checkpoints import application_of, make_folder, pace_file
from mirrorlake.landing.driver_query import DriverQuery
from mirrorlake.landing.job import BatchNumbers, LandJob
from mirrorlake.landing.session_sink import SessionSink, stream_of
from mirrorlake.landing.sinks import PathSink
from mirrorlake.landing.source_comparison import LandingPlan
from mirrorlake.landing.source_ends import SourceEnds
from mirrorlake.offsets.positions import Ranges, TopicAndPartition, offset_count, ranges_between
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.spark.home import over_connect
from mirrorlake.spark.session_start import SessionStart

if TYPE_CHECKING:  # a few records are landed without a query
    from pyspark.sql.streaming.query import StreamingQuery

#: How long a stop waits for the batch in hand, seconds.
STOP_SECONDS = 60.0
#: The time from the start of a batch to that of the next one if the file does not set it, seconds:
#: where this process commits, and where a session does. A session needs a Spark job and a commit
#: for each batch, whatever its size.
TRIGGER_SECONDS, SESSION_TRIGGER_SECONDS = 0.35, 1.5


@dataclass(frozen=True)
class LandingQuery:
    """Lands a cluster's partitions until it is stopped, or up to ends: a streaming query of
    Spark's, or this process.

    Attributes:
        sink: commits its batches.
        query: the running query; None if there is nothing to land.
        final: the next offsets at which it is to end; None if it goes on.
        name: that of its checkpoint (`checkpoints.forget_query`): any other name, or none, would
            remove the checkpoints of other queries.
    """

    sink: PathSink | SessionSink
    query: "StreamingQuery | DriverQuery | None" = None
    final: Mapping[TopicAndPartition, int] | None = None
    name: str = field(kw_only=True)

    @property
    def active(self) -> bool:
        """Whether the query runs, and has to go on."""
        return self._goes_on() and not self._at_end() and self.sink.failure is None

    @property
    def ended(self) -> bool:
        """Whether the query has come to its end. One that others stopped, or that ended with its
        session, has not, and has no exception either."""
        return self.query is None or self._at_end()

    @property
    def outgrown(self) -> bool:
        """Whether it has ended so that a Spark query can land the backlog."""
        return isinstance(self.query, DriverQuery) and self.query.outgrown

    @property
    def began(self) -> bool:
        """Whether it has completed a batch, or come to its end."""
        if self.covered():
            return self.sink.failure is None  # `covered` lets the sink find its failure
        return not (self._goes_on() or self.exception())

    def exception(self) -> Exception | None:
        """The error that ended the query or has to end it; None if it ended in order."""
        if self.query is None or self.query.isActive:
            return self.sink.failure
        self.covered()  # lets the sink learn what its last batches have read
        return self.sink.failure or self.query.exception()

    def covered(self) -> dict[TopicAndPartition, int]:
        """How far each partition is covered, as the query itself reports."""
        return dict(self.sink.covered())

    def fenced(self) -> bool:
        """Whether another process has taken over, so that the query commits nothing any more."""
        return self.sink.fenced()

    def stop(self) -> None:
        """Stop between batches, unless that takes too long: an interrupted one is done again."""
        query = self.query
        if query is None:
            return
        self.sink.stop_after_batch()
        for _ in attempts(STOP_SECONDS, 0.005):
            in_flight = query.isActive and query.status["isTriggerActive"]
            if not in_flight:
                break
        query.stop()
        self.sink.close(STOP_SECONDS if in_flight else None)

    def _goes_on(self) -> bool:
        return self.query is not None and bool(self.query.isActive)

    def _at_end(self) -> bool:
        if self.final is None:
            return False
        covered = self.covered()
        return all(covered.get(key, 0) >= end for key, end in self.final.items())


def start_landing(
    lake: Lake,
    plan: LandingPlan,
    landing: Landing,
    client: Settings,
    *,
    checkpoint: Path,
    once: bool,
    is_heartbeats: Callable[[str], bool] = lambda _topic: False,
    heartbeats_wait: float = 0.0,
    later: SessionStart | None = None,
) -> LandingQuery:
    """Start landing a plan with at least one partition: until stopped or, with `once`, up to the
    end offsets seen at the start. `client` are settings of librdkafka; `checkpoint` was begun
    before the plan was made. Topics for which `is_heartbeats` is true wait for one another, for
    `heartbeats_wait` seconds at most: otherwise a flow idle except for its heartbeats would never
    rest. `later` is a session that this process has not started: it lands what it can without.

    Raises ClusterUnreachable if, with `once`, the source does not report its ends.
    """
    job = _job(lake, plan, landing, client)
    ranges: Ranges = {}
    if once:
        ends = SourceEnds(job.alias, job.client)
        final = ends.all(job.starts)
        job = replace(job, final=final, final_noted=ends.noted(final, final))
        ranges = ranges_between(job.starts, final)
        if not ranges:
            return LandingQuery(SessionSink(lake, job), name=checkpoint.name)
    else:
        waiting = frozenset(key for key in plan.starts if is_heartbeats(key[0]))
        job = replace(job, waiting=waiting, waiting_seconds=heartbeats_wait)
    sink = _path_sink(lake, job, application_of(checkpoint))
    few = 0 < offset_count(ranges) <= job.max_records
    waits = later is not None and landing.small_batch_records > 0
    if sink is None or not (waits or (few and sink.is_small(ranges))):
        return _stream(lake, job, landing, checkpoint)
    make_folder(checkpoint)  # a query of Spark's would take seconds to begin
    query = DriverQuery(sink, _paced(job, landing, TRIGGER_SECONDS), later)
    return LandingQuery(sink, query, job.final, name=checkpoint.name)


def land_again(
    lake: Lake,
    plan: LandingPlan,
    landing: Landing,
    client: Settings,
    *,
    ends: Mapping[TopicAndPartition, int],
    occasion: str,
    besides: Mapping[TopicAndPartition, OffsetRanges] | None = None,
    check: Callable[[], object] = lambda: None,
) -> None:
    """Land offsets again in one commit, from a plan's `starts`, inclusive, to `ends`, exclusive:
    the stage has lost them, except for those in `besides`. Records that were deleted by predicate
    stay deleted, even if the source still has them. `occasion` names the reason: two calls with the
    same one, even at the same time, land the records once. `check` is called once all is read: if
    it raises, nothing is committed. Raises KafkaException, or Spark's errors.
    """
    left_out = {key: OffsetRanges(ranges) for key, ranges in (besides or {}).items()}
    for (topic, partition, generation), ranges in forgotten_from(lake, plan.alias).items():
        if generation == plan.generations.get((topic, partition), 0):
            left_out.setdefault((topic, partition), OffsetRanges()).add(ranges)
    job = replace(_job(lake, plan, landing, client), final=ends, forgotten=left_out)
    application = f"mirrorlake again {plan.alias} {plan.assigned} {occasion}"
    sink = _path_sink(lake, job, application)
    if sink is None:
        SessionSink(lake, job).append(application, check)
        return
    with closing(sink):
        sink.land(ranges_between(job.starts, ends), None, 1, check=check)


def _job(lake: Lake, plan: LandingPlan, landing: Landing, client: Settings) -> LandJob:
    place = lake.directory
    return LandJob(
        alias=plan.alias,
        client=dict(client),
        starts=plan.starts,
        generations=plan.generations,
        schema=definition("records").rows,
        directory=None if place is None else place / "records",
        pace_file=str(pace_file(lake, plan.alias)),
        max_records=landing.max_records_per_batch,
        tasks=landing.files_per_batch,
        small_batch_records=landing.small_batch_records,
        numbers=BatchNumbers(plan.newest_batch),
    )


def _path_sink(lake: Lake, job: LandJob, application: str) -> PathSink | None:
    """The sink of this process; None where the session commits."""
    return PathSink(lake, job, application) if isinstance(lake, PathLake) else None


def _stream(lake: Lake, job: LandJob, landing: Landing, checkpoint: Path) -> LandingQuery:
    """Start one query for all partitions; which of them wait for others is decided per batch."""
    spark = lake.spark  # now it is known whether this is Spark Connect
    sink = None if over_connect() else _path_sink(lake, job, application_of(checkpoint))
    trigger = TRIGGER_SECONDS
    if sink is None:
        job, trigger = replace(job, directory=None), SESSION_TRIGGER_SECONDS
    job = _paced(job, landing, trigger)
    writer = (
        stream_of(spark, job, lake.lake_id)
        .writeStream.queryName(f"land {job.alias} {lake.lake_id} {checkpoint.name}")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=f"{job.trigger_seconds * 1_000:.0f} milliseconds")
    )
    committer = sink or SessionSink(lake, job)
    query = committer.start(writer, checkpoint)
    return LandingQuery(committer, query, job.final, name=checkpoint.name)


def _paced(job: LandJob, landing: Landing, trigger: float) -> LandJob:
    """Set the seconds between the starts of batches: `trigger` if the file does not set them."""
    if landing.trigger_ms is not None:
        trigger = landing.trigger_ms / 1_000
    return replace(job, trigger_seconds=trigger, apart_seconds=landing.trigger_limit_ms / 1_000)
