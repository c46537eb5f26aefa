"""Writing a shard's rows, in transactions of bounded size, around what the target refuses."""

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import MapBehind, MapUnknown, TargetLost, TargetRefused, TopicRefused
from mirrorlake.kafka.refusals import principal_of
from mirrorlake.lake.row_sizes import bytes_of_each
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.runs import add_written, rebuild
from mirrorlake.produce.counted import PlannedRows
from mirrorlake.produce.culprit import TopicDenied, lacking_rights
from mirrorlake.produce.delivery import Chunk, halves_of, parts_of, record_count, size_of
from mirrorlake.produce.flow_positions import MetadataFull
from mirrorlake.produce.older_lake import OLDER
from mirrorlake.produce.parking import RECORD_REFUSALS, RefusedRecord, Search
from mirrorlake.produce.report import Progress, Refused, measure
from mirrorlake.produce.writer import ShardWriter, TooSlow

#: A transaction ends at this many records, or at the bytes (Arrow's size of the rows) that the
#: target takes in some seconds (`produce/pace.py`). A worker waits at each end, so fewer are
#: faster; for records of more than 200 B the bytes decide.
TRANSACTION_RECORDS = 600_000
#: How long a task writes, seconds, before it leaves the rest to the next batch: so the map shows
#: how far a slow target is, and a stopped run does not wait for millions of records.
TASK_SECONDS = 30.0
#: Chunks of fewer records are not divided to make their metadata fit.
_UNDIVIDED = 64


class ShardWriting:
    """How a task writes rows; it keeps `progress`, the state of each source partition."""

    def __init__(self, writer: ShardWriter, progress: Mapping[TopicAndPartition, Progress]) -> None:
        self._writer, self._progress = writer, progress

    def write(self, rows: PlannedRows) -> bool:
        """Write rows. False when some are left: the metadata is full, or the time is over."""
        end = time.monotonic() + TASK_SECONDS
        pending: list[Chunk] = []
        records = size = 0
        for plan, batch in rows:
            for chunk in self._new_rows(self._progress[plan.key], batch):
                pending.append(chunk)
                records += len(chunk.offsets)
                size += chunk.size
            if records >= TRANSACTION_RECORDS or size >= self._writer.pace.limit:
                if not self._commit(pending) or time.monotonic() > end:
                    return False
                pending, records, size = [], 0, 0
        for state in self._progress.values():
            recover(state, self._writer)
        return not pending or self._commit(pending)

    def _new_rows(self, state: Progress, batch: pa.RecordBatch) -> Iterator[Chunk]:
        """Put aside the rows that the target has already; yield the rest."""
        offsets = batch.column("offset").to_numpy(zero_copy_only=False)
        known = int(np.searchsorted(offsets, state.position))
        if known:
            keep_for_rebuild(state, batch.slice(0, known), offsets[:known])
        if known < len(offsets) and not state.plan.restores_only:
            recover(state, self._writer)
            yield Chunk(state.plan, batch.slice(known), offsets[known:])

    def skip_left_out(self) -> None:
        """Move committed positions behind records that were left out on purpose (echoes, or given
        up): these have no row in the map, and would be read again at every start."""
        ends = []
        for state in self._progress.values():
            end, position = state.plan.last + 1, state.written_end(state.position)
            if state.refused is None and end > position and not state.plan.restores_only:
                ends.append((state.plan, end, state.written))
        # Else they move with a later batch: once rows are mapped, or without the denied topic.
        with suppress(MetadataFull, TopicDenied):
            if ends:
                self._writer.commit_positions(ends)

    def _commit(self, chunks: Collection[Chunk]) -> bool:
        """Write chunks, in several transactions if one does not do. False if the metadata is full.

        A partition with a refused record stops in front of it, and what is behind is only searched
        for more such records; the others go on.
        """
        open_chunks = []
        for chunk in chunks:
            state = self._progress[chunk.plan.key]
            if state.refused is None:
                open_chunks.append(chunk)
            elif state.search is not None:
                self._search(state, state.search, chunk)
        if not open_chunks:
            return True
        if self._writer.over:
            return False
        count = record_count(open_chunks)
        if size_of(open_chunks) > 2 * self._writer.pace.limit and count > 1:
            return self._commit_each(*halves_of(open_chunks))
        written = {key: state.written for key, state in self._progress.items()}
        try:
            done = self._writer.write(open_chunks, written)
        except MetadataFull:
            if len(open_chunks) == 1 and count <= _UNDIVIDED:
                return False
            return self._commit_each(*halves_of(open_chunks))
        except TooSlow:
            return self._commit_each(*halves_of(open_chunks))
        except TargetRefused as refusal:
            return self._write_around(open_chunks, refusal)
        except TopicDenied as denied:
            return self._write_without_topic(open_chunks, denied)
        now = time.time_ns() // 1_000_000
        for chunk, segments in done:
            state = self._progress[chunk.plan.key]
            state.written = add_written(state.written, segments)
            state.segments.extend(segments)
            measure(state, chunk.rows, now)
        return True

    def _commit_each(self, *parts: Collection[Chunk]) -> bool:
        """Commit some parts one after another, as long as each is written in full."""
        return all(self._commit(part) for part in parts if part)

    def _write_around(self, chunks: list[Chunk], refusal: TargetRefused) -> bool:
        """Write what the target takes: other partitions, and rows before the refused record."""
        key = refusal.topic_partition
        mine = [chunk for chunk in chunks if chunk.plan.key == key]
        others = [chunk for chunk in chunks if chunk.plan.key != key]
        state, first, last = self._progress[key], refusal.first_offset, refusal.last_offset
        if refusal.reason not in RECORD_REFUSALS or first is None or last is None:
            complete = self._commit_each(others)
            all_of_it = int(mine[0].offsets[0]), int(mine[-1].offsets[-1])
            lost_from = refusal.target_offset if isinstance(refusal, TargetLost) else None
            state.refused = Refused(*all_of_it, refusal.message, refusal.incident_kind, lost_from)
            return complete
        front, refused, behind = parts_of(mine, first, last)
        if not self._commit_each([*others, *front]):
            return False
        if record_count(mine) > 1:
            # Records that share a batch with a refused one are refused with it, also from other
            # files of the stage: only one that is refused alone is meant.
            parts = halves_of(refused) if record_count(refused) > 1 else (refused,)
            return self._commit_each(*parts, behind)
        (one,), reason = refused, str(refusal.reason)
        at = int(one.offsets[0])
        state.refused = Refused(at, at, refusal.message, refusal.incident_kind)
        state.refused_records.append(_record(one, reason))
        if state.parks and self._writer.target.transactional:
            state.search = Search.like(reason, one.rows)
        return True

    def _write_without_topic(self, chunks: list[Chunk], denied: TopicDenied) -> bool:
        """Write the chunks of all topics but those that the target denies. If it does not say which
        these are, ask for the rights on all."""
        refused = {topic: self._why(denied, name) for topic, name in denied.names.items()}
        if not refused:
            sources = {chunk.plan.target_topic: chunk.plan.topic for chunk in chunks}
            for name, right in lacking_rights(self._writer.target, sources.keys()).items():
                refused[sources[name]] = self._why(TopicDenied(denied.error, right), name)
        if not refused:
            raise KafkaException(denied.error)
        for state in self._progress.values():
            topic = state.plan.topic
            if topic in refused and state.refused is None:
                first = state.written_end(state.plan.first)
                text = f"the target takes nothing of topic {topic}: {refused[topic]}"
                last = max(first, state.plan.last)
                state.refused = Refused(first, last, text, TopicRefused.incident_kind)
        return self._commit_each([chunk for chunk in chunks if chunk.plan.topic not in refused])

    def _why(self, denied: TopicDenied, name: str) -> str:
        """Why the target denies a topic that it knows by this name, and what helps."""
        if denied.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            who, right = principal_of(self._writer.target.client), denied.right
            return f"{who} may not {right} topic {name}; grant that, and it goes on by itself"
        return f"it refuses topic {name}: {denied.error.str()}; it is tried again"

    def _search(self, state: Progress, search: Search, chunk: Chunk) -> None:
        """Find more refused records behind the first one. Nothing is written."""
        for at in search.suspects(chunk.rows):
            one = Chunk(chunk.plan, chunk.rows.slice(at, 1), chunk.offsets[at : at + 1])
            try:
                refusal = self._writer.refusal_of(one)
            except TopicDenied:
                state.search = None  # the next batch reports it
                return
            if refusal is None:
                search.was_taken()
            elif refusal.reason in RECORD_REFUSALS:
                state.refused_records.append(_record(one, refusal.reason))
            else:
                state.search = None  # the topic was made again: the next batch reports it
                return


def _record(chunk: Chunk, reason: str) -> RefusedRecord:
    """The single record of a chunk, as a refused one."""
    return RefusedRecord(int(chunk.offsets[0]), reason, int(bytes_of_each(chunk.rows)[0]))


def keep_for_rebuild(state: Progress, rows: pa.RecordBatch, offsets: np.ndarray) -> None:
    """Keep rows of a partition below the target's position, for rebuilding their map rows."""
    state.rebuilt.append(offsets)
    if state.by_content is not None:
        state.by_content.add(rows)
    measure(state, rows, time.time_ns() // 1_000_000)


def recover(state: Progress, log: ShardWriter) -> None:
    """Find, once, where the target has rows that were put aside: by the position's metadata, else
    by content. If that fails, the partition stops in front of them. Raises the errors of `log`."""
    if state.recovered is not None or state.is_unknown:
        return
    plan, last = state.plan, state.position - 1
    offsets = np.concatenate([np.empty(0, np.int64), *state.rebuilt])
    try:
        state.recovered = rebuild(offsets, state.lost)
    except ValueError as error:
        text = (
            f"{OLDER}, which took {plan.topic}-{plan.partition} up to source offset {last}, while "
            f"the map ends in front of {plan.floor.source}: {error}; where they are is found by "
            f"their content once the stage has all up to offset {last}"
        )
        kind = MapBehind.incident_kind
        if state.by_content is not None:
            records = log.records_from(plan.target_key, *state.by_content.bounds)
            try:
                state.recovered = state.by_content.find(records)
                return
            except MapUnknown as unknown:
                text, kind = unknown.message, unknown.incident_kind
        state.refused = Refused(plan.first, last, text, kind, log.end(plan.target_key))
