"""What one Spark task does: bring one shard's rows to the target, and report runs and latency per
partition.

A task may be tried again at any point, by Spark, after a crash, or while an older attempt still
lives. So it starts by making sure that it is the only writer (`init_transactions`) and by asking
the target how far the flow is; what is there already is not written again, and its map rows are
rebuilt from the committed metadata and the stage.
"""

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import MapError, PositionLost, TargetLost, TargetRefused, TopicRefused
from mirrorlake.kafka.client_pool import IDLE_SECONDS, ClientPool
from mirrorlake.kafka.refusals import principal_of
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.runs import CommittedMetadata, add_written, decode_written, trim_written
from mirrorlake.produce.batch import PartitionPlan, ShardPlan
from mirrorlake.produce.counted import counted
from mirrorlake.produce.culprit import TopicDenied
from mirrorlake.produce.delivery import Chunk, check_rising, halves_of, parts_of, size_of
from mirrorlake.produce.fencing import check_token
from mirrorlake.produce.pace import Pace
from mirrorlake.produce.parking import RECORD_REFUSALS, RefusedRecord, Search, size_of_rows
from mirrorlake.produce.provenance import without_echoes
from mirrorlake.produce.report import Progress, Refused, measure, result_of
from mirrorlake.produce.skipped import PlannedRows, Skipped, without_skipped
from mirrorlake.produce.stage_files import read_shard, split_by_partition
from mirrorlake.produce.writer import MetadataFull, ShardWriter, Target, TooSlow
from mirrorlake.spark.tasks import Work

#: A transaction ends when it holds this many records, or the bytes (Arrow's size of the rows) that
#: the target takes in some seconds (`produce/pace.py`). A worker waits at each end, so few of them
#: are quicker; for records of more than 200 B it is the bytes that count.
TRANSACTION_RECORDS = 600_000
#: How long a task writes, seconds, before it leaves the rest to the next batch: the map shows how
#: far a slow target is, and a run that is told to stop does not have to wait for millions of
#: records.
TASK_SECONDS = 30.0
#: This worker process, so that the driver knows in which one a shard's producer lives.
WORKER = uuid.uuid4().hex
#: Its producers, by transactional id: of flows, and of replays, which never come again. Each ends
#: with its last user.
_writers: ClientPool[ShardWriter] = ClientPool()
#: What is known of each target's speed, by transactional id: it outlives producers.
_paces: ClientPool[Pace] = ClientPool(idle_seconds=6 * IDLE_SECONDS)


@dataclass(frozen=True)
class ShardJob:
    """What a task is told. `owner` is the worker whose producer wrote this shard last, and so may
    simply go on.

    `foreign_from` has, by source partition, the target offset from which on no record can be the
    flow's own unless it is behind the map; it is asked for where the target knows no position of
    the flow. `parks`: the flow goes on behind records that the target refuses, so more of them are
    looked for.
    """

    plan: ShardPlan
    target: Target
    owner: str | None
    skipped: Skipped = field(default_factory=dict)
    foreign_from: Mapping[TopicAndPartition, int] = field(default_factory=dict)
    parks: bool = False


def produce_shards(work: Work[ShardJob]) -> Iterator[pa.RecordBatch]:
    """The task: writes shards, and gives rows of RESULT. It reads the stage's files itself where
    Spark hands over no rows."""
    for job, batches in work:
        rows = read_shard(job.plan, job.skipped) if batches is None else _planned(job, batches)
        yield produce_shard(job, rows)


def _planned(job: ShardJob, batches: Iterable[pa.RecordBatch]) -> PlannedRows:
    plans = {plan.key: plan for plan in job.plan.partitions}
    for batch in batches:
        yield from split_by_partition(batch, plans)


def produce_shard(job: ShardJob, rows: PlannedRows) -> pa.RecordBatch:
    """Write the rows of one shard and return one row of RESULT per partition."""
    try:
        writer = _writer(job)
        progress = _progress(job, writer)
        new_rows = without_echoes(
            counted(rows, job.plan.partitions, job.skipped), job.target.provenance
        )
        complete = _write_all(writer, progress, without_skipped(new_rows, job.skipped))
        if complete and job.target.transactional:
            _skip_left_out(writer, progress.values())
        if writer.over:
            _writers.take(job.target.transactional_id)
    except BaseException:
        # Whatever it was, this producer's state is not known any more; the next attempt starts a
        # fresh one.
        _writers.take(job.target.transactional_id)
        raise
    return result_of(job.plan.shard, WORKER, progress.values(), complete)


def forget_writers(names: Iterable[str]) -> None:
    """Let go of this process's producers of some transactional ids."""
    for name in names:
        _writers.take(name)


def _writer(job: ShardJob) -> ShardWriter:
    """The shard's producer: the one that wrote it last, or a new one, which has fenced all
    others."""
    known = _writers.get(job.target.transactional_id)
    if known is not None and job.owner == WORKER and known.target == job.target:
        return known
    name = job.target.transactional_id
    pace = _paces.get(name) or Pace()
    writer = ShardWriter(job.target, pace)
    _paces.put(name, pace)
    _writers.put(name, writer)
    return writer


def _progress(job: ShardJob, writer: ShardWriter) -> dict[TopicAndPartition, Progress]:
    """Where each partition stands. A producer asks once for each, when it first has it in a batch,
    which need not be its first batch: no other process writes while it lives."""
    committed: Mapping[TopicAndPartition, tuple[int, str]] = {}
    keys = [plan.target_key for plan in job.plan.partitions]
    unasked = [key for key in keys if key not in writer.asked] if job.target.transactional else []
    if unasked:
        check_token(job.target, {topic for topic, _ in unasked})
        committed = writer.positions(unasked)
    states = {}
    for plan in job.plan.partitions:
        state = Progress(plan, plan.first, list(plan.unmapped), [], parks=job.parks)
        position, metadata = committed.get(plan.target_key, (-1, ""))
        if position >= 0:
            _go_on_from(state, position, _decoded(plan, metadata))
        elif plan.target_key in unasked:
            _refuse_unknown(job, writer, state)
        states[plan.key] = state
    return states


def _go_on_from(state: Progress, position: int, metadata: CommittedMetadata) -> None:
    """Take over the position that the target has. One of another generation of either topic says
    nothing about these offsets: the map had all that was written before, when the first record of a
    newer generation was."""
    plan = state.plan
    same = (metadata.generation, metadata.target_generation) == (
        plan.generation,
        plan.floor.target_generation,
    )
    if same and position > plan.floor.source:
        state.position = max(position, plan.first)
        state.lost = trim_written(metadata.written, plan.floor.target, plan.floor.source)
        state.written = [*plan.unmapped, *state.lost]


def _refuse_unknown(job: ShardJob, writer: ShardWriter, state: Progress) -> None:
    """Stop a partition of which the target forgot the position while it holds records that may be
    the flow's own."""
    plan = state.plan
    start = job.foreign_from.get(plan.key)
    foreign = None if start is None else writer.first_record(plan.target_key, start)
    if foreign is not None:
        lost = PositionLost(
            f"the target knows no position of the flow in {plan.target_topic}-{plan.partition} any "
            f"more, and holds records from offset {foreign} on that are not in the map: whether "
            "they are the flow's own cannot be known, so nothing is written; decide with "
            "mirrorlake resolve",
            topic=plan.topic,
            partition=plan.partition,
            generation=plan.generation,
        )
        state.refused = Refused(plan.first, plan.last, lost.message, lost.incident_kind)


def _decoded(plan: PartitionPlan, metadata: str) -> CommittedMetadata:
    """What a committed position says beside the offset."""
    try:
        return decode_written(metadata)
    except ValueError as error:
        raise MapError(
            f"the target's position of {plan.target_topic}-{plan.partition} carries metadata that "
            f"this version cannot read ({error}); upgrade mirrorlake",
            topic=plan.topic,
            partition=plan.partition,
        ) from error


def _write_all(
    writer: ShardWriter,
    progress: Mapping[TopicAndPartition, Progress],
    rows: PlannedRows,
) -> bool:
    """Write in transactions of bounded size. False when rows are left: the metadata is full, or the
    time is over."""
    end = time.monotonic() + TASK_SECONDS
    pending: list[Chunk] = []
    records = size = 0
    for plan, batch in rows:
        state = progress[plan.key]
        for chunk in _new_rows(state, batch):
            pending.append(chunk)
            records += len(chunk.offsets)
            size += chunk.rows.nbytes
        if records >= TRANSACTION_RECORDS or size >= writer.pace.limit:
            if not _commit(writer, progress, pending) or time.monotonic() > end:
                return False
            pending, records, size = [], 0, 0
    return not pending or _commit(writer, progress, pending)


def _skip_left_out(writer: ShardWriter, states: Iterable[Progress]) -> None:
    """Move the committed positions behind what was left out on purpose (records that were on the
    target already, or that an operator gave up): it has no row in the map, and would be read again
    at every start."""
    ends = []
    for state in states:
        end = state.plan.last + 1
        position = state.segments[-1].source_last + 1 if state.segments else state.position
        if state.refused is None and end > position and not state.plan.restores_only:
            ends.append((state.plan, end, state.written))
    # Else they move with a later batch, when the map has what is unmapped now, or without the
    # topic.
    with suppress(MetadataFull, TopicDenied):
        if ends:
            writer.commit_positions(ends)


def _new_rows(state: Progress, batch: pa.RecordBatch) -> Iterator[Chunk]:
    """Put aside what the target has already; yield the rest."""
    offsets = batch.column("offset").to_numpy(zero_copy_only=False)
    chunk = Chunk(state.plan, batch, offsets)
    check_rising(chunk, state.last)
    state.last = int(offsets[-1])
    known = int(np.searchsorted(offsets, state.position))
    if known:
        state.rebuilt.append(offsets[:known])
        measure(state, batch.slice(0, known), time.time_ns() // 1_000_000)
    if known < len(offsets) and not state.plan.restores_only:
        yield Chunk(state.plan, batch.slice(known), offsets[known:])


def _commit(
    writer: ShardWriter, progress: Mapping[TopicAndPartition, Progress], chunks: list[Chunk]
) -> bool:
    """Write chunks, in more transactions if one would not do. False when the metadata is full.

    A partition with a refused record stops in front of it, and what is behind is only searched for
    more of its kind; the others go on.
    """
    open_chunks = []
    for chunk in chunks:
        state = progress[chunk.plan.key]
        if state.refused is None:
            open_chunks.append(chunk)
        elif state.search is not None:
            _search(writer, state, state.search, chunk)
    if not open_chunks:
        return True
    if writer.over:
        return False
    if (
        size_of(open_chunks) > 2 * writer.pace.limit
        and sum(len(chunk.offsets) for chunk in open_chunks) > 1
    ):
        return all(_commit(writer, progress, part) for part in halves_of(open_chunks))
    written = {key: state.written for key, state in progress.items()}
    try:
        done = writer.write(open_chunks, written)
    except MetadataFull:
        if len(open_chunks) == 1 and len(open_chunks[0].offsets) <= 64:
            return False
        return all(_commit(writer, progress, part) for part in halves_of(open_chunks))
    except TooSlow:
        return all(_commit(writer, progress, part) for part in halves_of(open_chunks))
    except TargetRefused as refusal:
        return _write_around(writer, progress, open_chunks, refusal)
    except TopicDenied as denied:
        return _write_without_topic(writer, progress, open_chunks, denied)
    now = time.time_ns() // 1_000_000
    for chunk, segments in done:
        state = progress[chunk.plan.key]
        state.written = add_written(state.written, segments)
        state.segments.extend(segments)
        measure(state, chunk.rows, now)
    return True


def _write_around(
    writer: ShardWriter,
    progress: Mapping[TopicAndPartition, Progress],
    chunks: list[Chunk],
    refusal: TargetRefused,
) -> bool:
    """Write what the target does take: the other partitions, and of this one all in front of the
    refused record."""
    key = refusal.topic_partition
    mine = [chunk for chunk in chunks if chunk.plan.key == key]
    others = [chunk for chunk in chunks if chunk.plan.key != key]
    state, first, last = progress[key], refusal.first_offset, refusal.last_offset
    if refusal.reason not in RECORD_REFUSALS or first is None or last is None:
        complete = not others or _commit(writer, progress, others)
        all_of_it = int(mine[0].offsets[0]), int(mine[-1].offsets[-1])
        lost_from = refusal.target_offset if isinstance(refusal, TargetLost) else None
        state.refused = Refused(*all_of_it, refusal.message, refusal.incident_kind, lost_from)
        return complete
    front, refused, behind = parts_of(mine, first, last)
    good = [*others, *front]
    if good and not _commit(writer, progress, good):
        return False
    if sum(len(chunk.offsets) for chunk in mine) > 1:
        # What went in one batch with a refused record is refused with it, of other files of the
        # stage too: only one that is refused alone is meant.
        parts = (
            halves_of(refused) if sum(len(chunk.offsets) for chunk in refused) > 1 else (refused,)
        )
        return all(_commit(writer, progress, part) for part in (*parts, behind) if part)
    (one,) = refused
    state.refused = Refused(
        int(one.offsets[0]), int(one.offsets[0]), refusal.message, refusal.incident_kind
    )
    state.refused_records.append(_record(one, str(refusal.reason)))
    if state.parks and writer.target.transactional:
        state.search = Search.like(str(refusal.reason), one.rows)
    return True


def _write_without_topic(
    writer: ShardWriter,
    progress: Mapping[TopicAndPartition, Progress],
    chunks: list[Chunk],
    denied: TopicDenied,
) -> bool:
    """Write what is of other topics than those that the target does not take. Where it does not say
    which these are, it is asked for the rights on all."""
    refused = {topic: _why(writer, denied, name) for topic, name in denied.names.items()}
    if not refused:
        sources = {chunk.plan.target_topic: chunk.plan.topic for chunk in chunks}
        for name, right in writer.lacking(sources.keys()).items():
            refused[sources[name]] = _why(writer, TopicDenied(denied.error, right), name)
    if not refused:
        raise KafkaException(denied.error)
    for state in progress.values():
        if state.plan.topic in refused and state.refused is None:
            first = state.segments[-1].source_last + 1 if state.segments else state.plan.first
            text = (
                f"the target takes nothing of topic {state.plan.topic}: {refused[state.plan.topic]}"
            )
            state.refused = Refused(
                first, max(first, state.plan.last), text, TopicRefused.incident_kind
            )
    others = [chunk for chunk in chunks if chunk.plan.topic not in refused]
    return not others or _commit(writer, progress, others)


def _why(writer: ShardWriter, denied: TopicDenied, name: str) -> str:
    """Why the target does not take a topic that it knows by this name, and what helps."""
    if denied.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        who = principal_of(writer.target.client)
        return f"{who} may not {denied.right} topic {name}; grant that, and it goes on by itself"
    return f"it refuses topic {name}: {denied.error.str()}; it is tried again"


def _search(writer: ShardWriter, state: Progress, search: Search, chunk: Chunk) -> None:
    """Find more records that the target refuses, behind the first one. Nothing is written."""
    for at in search.suspects(chunk.rows):
        one = Chunk(chunk.plan, chunk.rows.slice(at, 1), chunk.offsets[at : at + 1])
        try:
            refusal = writer.refusal_of(one)
        except TopicDenied:
            state.search = None  # the next batch tells of it
            return
        if refusal is None:
            search.was_taken()
        elif refusal.reason in RECORD_REFUSALS:
            state.refused_records.append(_record(one, refusal.reason))
        else:
            state.search = None  # the topic was made again: the next batch tells of it
            return


def _record(chunk: Chunk, reason: str) -> RefusedRecord:
    """The one record of a chunk, as refused."""
    return RefusedRecord(int(chunk.offsets[0]), reason, int(size_of_rows(chunk.rows)[0]))
