"""The work of one Spark task: write one shard's rows to the target, and report runs and latency per
partition.

A task may be tried again at any point, by Spark, after a crash, or while an older attempt still
lives. So it first makes sure that it is the only writer (`init_transactions`) and asks the target
how far the flow is. Records that are there already are not written again; their map rows are
rebuilt from the committed metadata and the stage.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from mirrorlake.errors import MapError, MapUnknown, PositionLost, TopicRefused
from mirrorlake.kafka.client_pool import IDLE_SECONDS, ClientPool
from mirrorlake.offsets.generations import number_of
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.runs import CommittedMetadata, add_written, decode_metadata, trim_written
from mirrorlake.produce.batch import PartitionPlan, ShardPlan
from mirrorlake.produce.counted import PlannedRows, Skipped, counted, without_skipped
from mirrorlake.produce.fencing import check_token
from mirrorlake.produce.marked import marked_segments
from mirrorlake.produce.older_lake import DECIDE, OLDER, ContentMatch
from mirrorlake.produce.pace import Pace
from mirrorlake.produce.provenance import without_echoes
from mirrorlake.produce.report import Progress, Refused, result_of
from mirrorlake.produce.shard_writing import ShardWriting
from mirrorlake.produce.spec import Target
from mirrorlake.produce.stage_files import read_shard, rows_by_partition
from mirrorlake.produce.writer import ShardWriter
from mirrorlake.spark.tasks import Work

#: The id of this worker process: the driver learns in which one a shard's producer lives.
WORKER = uuid.uuid4().hex
#: Its producers, by transactional id: of flows, and of replays, which never come again. Each one
#: ends with its last user.
_writers: ClientPool[ShardWriter] = ClientPool()
#: The known speed of each target, by transactional id: it outlives producers.
_paces: ClientPool[Pace] = ClientPool(idle_seconds=6 * IDLE_SECONDS)


@dataclass(frozen=True)
class ShardJob:
    """The input of a task. `owner` is the worker whose producer wrote this shard last, and which
    may therefore simply go on.

    `foreign_from` has, by source partition, the target offset from which on a record may be the
    flow's own without being in the map; the target is searched from there if it knows no position
    of the flow. `again` are partitions that are produced again, since it is not known where the
    target has their records below an offset. `parks`: the flow goes on behind records that the
    target refuses, so the task looks for more of them.
    """

    plan: ShardPlan
    target: Target
    owner: str | None
    skipped: Skipped = field(default_factory=dict)
    foreign_from: Mapping[TopicAndPartition, int] = field(default_factory=dict)
    again: Mapping[TopicAndPartition, int] = field(default_factory=dict)
    parks: bool = False


def produce_shards(work: Work[ShardJob]) -> Iterator[pa.RecordBatch]:
    """Writes shards; gives rows of RESULT. Without rows from Spark it reads the stage's files."""
    for job, batches in work:
        rows = read_shard(job.plan, job.skipped) if batches is None else _planned(job, batches)
        yield produce_shard(job, rows)


def _planned(job: ShardJob, batches: Iterable[pa.RecordBatch]) -> PlannedRows:
    plans = {plan.key: plan for plan in job.plan.partitions}
    return counted(rows_by_partition(batches, plans), job.plan.partitions, job.skipped)


def produce_shard(job: ShardJob, rows: PlannedRows) -> pa.RecordBatch:
    """Write and count the rows of a shard; return one row of RESULT per partition."""
    try:
        writer = _writer(job)
        progress = _progress(job, writer)
        new_rows = without_echoes(rows, job.target.provenance)
        writing = ShardWriting(writer, progress)
        complete = writing.write(without_skipped(new_rows, job.skipped))
        if complete and job.target.transactional:
            writing.skip_left_out()
        if writer.over:
            _writers.take(job.target.transactional_id)
    except BaseException:
        # After any error the producer's state is unknown; the next attempt starts a fresh one.
        _writers.take(job.target.transactional_id)
        raise
    return result_of(job.plan.shard, WORKER, progress.values(), complete, writer.take_ended())


def forget_writers(names: Iterable[str]) -> None:
    """Drop this process's producers of some transactional ids."""
    for name in names:
        _writers.take(name)


def _writer(job: ShardJob) -> ShardWriter:
    """The shard's producer: the one that wrote it last, or a new one, which fenced all others."""
    known = _writers.get(job.target.transactional_id)
    if (
        known is not None
        and (job.owner, known.target) == (WORKER, job.target)
        and not known.is_outgrown(len(job.plan.partitions))
    ):
        return known
    name = job.target.transactional_id
    pace = _paces.get(name) or Pace()
    writer = ShardWriter(job.target, pace)
    _paces.put(name, pace)
    _writers.put(name, writer)
    return writer


def _progress(job: ShardJob, writer: ShardWriter) -> dict[TopicAndPartition, Progress]:
    """The state of each partition. A producer asks for a position once per partition, in the first
    batch that has it: no other process writes while the producer lives."""
    committed: Mapping[TopicAndPartition, tuple[int, str]] = {}
    keys = [plan.target_key for plan in job.plan.partitions]
    unasked = [key for key in keys if key not in writer.asked] if job.target.transactional else []
    if unasked:
        check_token(job.target, {topic for topic, _ in unasked})
        committed = writer.positions(unasked)
    unknown = {key for key in unasked if key not in committed}
    starts = {
        plan.target_key: job.foreign_from[plan.key]
        for plan in job.plan.partitions
        if plan.target_key in unknown and plan.key in job.foreign_from
    }
    unsettled = writer.with_open_transactions(starts)
    states = {}
    for plan in job.plan.partitions:
        state = Progress(plan, plan.first, list(plan.unmapped), [], parks=job.parks)
        position, metadata = committed.get(plan.target_key, (-1, ""))
        if position >= 0:
            known = _decoded(plan, metadata)
            if not _is_left_behind(job, plan, known):
                _go_on_from(job, writer, state, position, known)
        elif plan.target_key in unsettled:
            _refuse_unsettled(state)
        elif plan.target_key in unknown:
            _refuse_unknown(job, writer, state)
        states[plan.key] = state
    return states


def _go_on_from(
    job: ShardJob, writer: ShardWriter, state: Progress, position: int, metadata: CommittedMetadata
) -> None:
    """Go on from the target's position. One of another generation of either topic says nothing
    here: the map had all records of the older one before the newer one's first was written."""
    plan = state.plan
    generation = number_of(plan.source_ids, metadata.generation, metadata.source_id)
    if generation is None or generation > plan.generation:
        which = f"generation {generation}" if generation else "a generation that the lake lacks"
        text = (
            f"{OLDER}, which took records of {which} of topic {plan.topic}: whether it has those "
            f"from source offset {plan.first} on of generation {plan.generation} cannot be known; "
            f"{DECIDE}"
        )
        end = writer.end(plan.target_key)
        state.refused = Refused(plan.first, plan.last, text, MapUnknown.incident_kind, end)
        return
    same = generation == plan.generation and _is_same_target(plan, metadata)
    if same and position > plan.floor.source:
        state.position = max(position, plan.first)
        state.lost = trim_written(metadata.written, plan.floor.target, plan.floor.source)
        if plan.by_content and position <= plan.last + 1:  # else the target took more meanwhile
            state.by_content = ContentMatch(plan, position, state.lost, job.target.provenance)
        state.written = [*plan.unmapped, *state.lost]


def _is_same_target(plan: PartitionPlan, metadata: CommittedMetadata) -> bool:
    living = plan.floor.target_generation
    known = ((living, plan.target_id),)
    return number_of(known, metadata.target_generation, metadata.target_id) == living


def _is_left_behind(job: ShardJob, plan: PartitionPlan, metadata: CommittedMetadata) -> bool:
    """Whether a position is older than an operator's decision to produce a partition again: it
    names only what is below the log's end of then, and the map has nothing from behind that."""
    end = job.again.get(plan.key)
    return (
        end is not None
        and (plan.floor.target or 0) <= end
        and all(one.target_first + one.record_count <= end for one in metadata.written)
    )


def _refuse_unsettled(state: Progress) -> None:
    """Leave out a topic, for now, in which another producer's transaction hides what may be records
    of the flow, while the target has lost the position that would say so."""
    plan = state.plan
    text = (
        f"the target knows no position of the flow in {plan.target_topic}-{plan.partition} any "
        "more, and a transaction of another producer is open there: whether records behind it are "
        "the flow's own is not known before it ends, so nothing of the topic is written until then"
    )
    state.refused = Refused(plan.first, plan.last, text, TopicRefused.incident_kind)


def _refuse_unknown(job: ShardJob, writer: ShardWriter, state: Progress) -> None:
    """Stop a partition whose position the target lost, while it may have records of the flow."""
    plan = state.plan
    start = job.foreign_from.get(plan.key)
    foreign = None if start is None else writer.first_record(plan.target_key, start)
    if foreign is not None and not _go_on_behind_marked(job, writer, state, foreign):
        lost = PositionLost(
            f"the target knows no position of the flow in {plan.target_topic}-{plan.partition} any "
            f"more, and holds records from offset {foreign} on that are not in the map: whether "
            "they are the flow's own cannot be known, so nothing is written; decide with "
            "mirrorlake resolve",
            **plan.place._asdict(),
        )
        state.refused = Refused(plan.first, plan.last, lost.message, lost.incident_kind)


def _go_on_behind_marked(job: ShardJob, writer: ShardWriter, state: Progress, start: int) -> bool:
    """Go on behind the records that the target has of a replay from an offset on, where their
    headers say which they are. Each that it had sent in front of the last one is among them, unless
    the target has lost it since."""
    plan, mark = state.plan, job.target.mark
    if mark is None or plan.unmapped:
        return False
    segments = marked_segments(writer.records_from(plan.target_key, start, None), plan, mark)
    if not segments:
        return False
    state.position = max(segments[-1].source_last + 1, plan.first)
    state.recovered, state.written = segments, add_written((), segments)
    return True


def _decoded(plan: PartitionPlan, metadata: str) -> CommittedMetadata:
    try:
        return decode_metadata(metadata)
    except ValueError as error:
        raise MapError(
            f"the target's position of {plan.target_topic}-{plan.partition} carries metadata that "
            f"this version cannot read ({error}); upgrade mirrorlake",
            topic=plan.topic,
            partition=plan.partition,
        ) from error
