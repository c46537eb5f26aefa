"""Land: the source topics of one cluster into `records`, one streaming query however many flows
read from it.

Who commits is what differs between lakes: at a path this process does, by delta-rs, what it reads
itself or what Spark's tasks wrote; elsewhere the session's own sink. Within a query each batch is
committed exactly once. Nothing here needs a session before many records are to be landed, or where
the session is what commits: until then this process plans, too (`driver_query.py`).
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
from mirrorlake.lake.session_tables import LaterSession
from mirrorlake.landing.checkpoints import application_of, make_folder, pace_file
from mirrorlake.landing.driver_query import DriverQuery
from mirrorlake.landing.job import LandJob
from mirrorlake.landing.session_sink import SessionSink, stream_of
from mirrorlake.landing.sinks import PathSink
from mirrorlake.landing.source_comparison import LandingPlan
from mirrorlake.landing.source_ends import SourceEnds
from mirrorlake.offsets.positions import TopicAndPartition, offset_count, ranges_between
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.spark.home import over_connect

if TYPE_CHECKING:  # few records are landed without a query
    from pyspark.sql.streaming.query import StreamingQuery

#: How long a stop waits for the batch in hand, seconds.
STOP_SECONDS = 60.0
#: How long after the start of a batch the next one starts where the file does not say it, seconds:
#: where this process commits, and where a session does. A session takes a job and a commit of
#: Spark's for each, whatever it holds.
TRIGGER_SECONDS, SESSION_TRIGGER_SECONDS = 0.35, 1.5


@dataclass(frozen=True)
class LandingQuery:
    """Lands a cluster's partitions until it is stopped, or up to ends: a streaming query of
    Spark's, or this process.

    Attributes:
        sink: commits its batches.
        query: what goes on; None where nothing does.
        final: where that is to be ended, next offsets; None where it goes on.
        name: of its checkpoint (`checkpoints.forget_query`): that of another one, or none, would
            have the checkpoints of others removed.
    """

    sink: PathSink | SessionSink
    query: "StreamingQuery | DriverQuery | None" = None
    final: Mapping[TopicAndPartition, int] | None = None
    name: str = field(kw_only=True)

    @property
    def active(self) -> bool:
        """Whether it goes on, and has to."""
        return self._goes_on() and not self._at_end() and self.sink.failure is None

    @property
    def ended(self) -> bool:
        """Whether it has come to its end: one that others stopped, or their session's end did, has
        none, and no exception either."""
        return self.query is None or self._at_end()

    @property
    def outgrown(self) -> bool:
        """Whether it has ended for a query of Spark's to land what there is."""
        return isinstance(self.query, DriverQuery) and self.query.outgrown

    @property
    def began(self) -> bool:
        """Whether it has come through a batch, or to its end."""
        if self.query is not None and self.covered():
            return self.sink.failure is None  # which a sink knows by what is covered
        return not (self._goes_on() or self.exception())

    def exception(self) -> Exception | None:
        """What ended it, or has to, if it did not end in order."""
        if self.query is None or self.query.isActive:
            return self.sink.failure
        self.covered()  # by which the sink knows what its last batches have read
        return self.sink.failure or self.query.exception()

    def covered(self) -> dict[TopicAndPartition, int]:
        """How far each partition is covered, as it reports itself."""
        return dict({} if self.query is None else self.sink.covered())

    def fenced(self) -> bool:
        """Whether another process has taken over, so that nothing of it is committed any more."""
        return self.sink.fenced()

    def stop(self) -> None:
        """Stop it when no batch is in flight, as far as that is not too long: an interrupted one
        has to be done again."""
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
    later: LaterSession | None = None,
) -> LandingQuery:
    """Start landing what a plan says, at least one partition: until it is stopped, or `once` up to
    the end offsets seen at the start. `client` are settings of librdkafka, `checkpoint` was begun
    before the plan was made. Topics that `is_heartbeats` says wait for one another, so many seconds
    at most: a flow that is idle except for its heartbeats would else never rest. `later` is the
    session that this process has not started: it lands what it can without.

    Raises ClusterUnreachable where the source does not report the ends that it takes for `once`.
    """
    job = _job(lake, plan, landing, client)
    if not landing.small_batch_records:
        later = None  # all is for Spark
    if once:
        return _up_to_the_ends(lake, job, landing, checkpoint, later)
    waiting = frozenset(key for key in plan.starts if is_heartbeats(key[0]))
    job = replace(job, waiting=waiting, waiting_seconds=heartbeats_wait)
    sink = _path_sink(lake, job, application_of(checkpoint))
    if later is not None and sink is not None:
        return _landing_itself(sink, job, landing, later, checkpoint)
    return _stream(lake, job, landing, checkpoint)


def _up_to_the_ends(
    lake: Lake, job: LandJob, landing: Landing, checkpoint: Path, later: LaterSession | None
) -> LandingQuery:
    """Land up to the end offsets that there are now."""
    ends = SourceEnds(job.alias, job.client)
    final = ends.all(job.starts)
    job = replace(job, final=final, final_noted=ends.noted(final))
    ranges = ranges_between(job.starts, final)
    if not ranges:
        return LandingQuery(SessionSink(lake, job), name=checkpoint.name)
    sink = _path_sink(lake, job, application_of(checkpoint))
    few = sink is not None and offset_count(ranges) <= job.max_records and sink.is_small(ranges)
    if sink is not None and (few or later is not None):
        # a query of Spark's would take seconds to begin
        return _landing_itself(sink, job, landing, later, checkpoint)
    return _stream(lake, job, landing, checkpoint)


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
    """Land offsets in one commit, from the `starts` of a plan, inclusive, to `ends`, exclusive: the
    stage had them and has lost them, or has those `besides` them. What was deleted by predicate
    stays deleted: the source may have it still. `occasion` names what it is landed again for: twice
    for the same one, even at the same time, lands them once. `check` is called once all was read:
    nothing is committed when it raises. Raises KafkaException, or what Spark does.
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
    )


def _path_sink(lake: Lake, job: LandJob, application: str) -> PathSink | None:
    """Who commits in this process; None where the session does."""
    return PathSink(lake, job, application) if isinstance(lake, PathLake) else None


def _landing_itself(
    sink: PathSink, job: LandJob, landing: Landing, later: LaterSession | None, checkpoint: Path
) -> LandingQuery:
    """This process lands, as long as that is little."""
    make_folder(checkpoint)
    query = DriverQuery(sink, _paced(job, landing, TRIGGER_SECONDS), later)
    return LandingQuery(sink, query, job.final, name=checkpoint.name)


def _stream(lake: Lake, job: LandJob, landing: Landing, checkpoint: Path) -> LandingQuery:
    """One query for all partitions: which of them wait for others is decided for each batch."""
    spark = lake.spark  # by which it is known whether this is Spark Connect
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
    """How far apart batches begin, seconds: `trigger` where the file does not say it."""
    if landing.trigger_ms is not None:
        trigger = landing.trigger_ms / 1_000
    return replace(job, trigger_seconds=trigger, apart_seconds=landing.trigger_limit_ms / 1_000)
