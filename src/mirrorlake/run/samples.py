"""Samples of each partition's positions in a flow: rows of `positions`, only those that differ."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timezone

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.rising_times import time_of_sample
from mirrorlake.lake.samples import newest_samples
from mirrorlake.landing.source_comparison import CurrentGenerations
from mirrorlake.offsets.lag import Held, LagHistory, OpenTransactions, Stalls
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.samples import SampleLog
from mirrorlake.run.log_offsets import LogOffsets
from mirrorlake.run.snapshot import Snapshot
from mirrorlake.run.standing_rows import SampleRow, SampleValues, Seen, StandingRows, keep_known


@dataclass(frozen=True)
class FlowLag:
    """A flow's lag at one sample, heartbeats excluded: records summed over its partitions, seconds
    of the partition that is latest."""

    records: int
    seconds: float
    #: The sampled rows as in `positions`, those of heartbeats included.
    rows: Mapping[TopicAndPartition, SampleRow] = field(
        default_factory=dict, compare=False, repr=False
    )
    #: The flow's partitions that the source did not answer about.
    silent: Set[TopicAndPartition] = field(default=frozenset(), compare=False, repr=False)


class Sampler:
    """Samples a flow, remembers how long partitions lag and what was written. For one thread."""

    def __init__(
        self,
        flow: ResolvedFlow,
        deployment: Deployment,
        targets: TargetTopics,
        *,
        is_heartbeats: Callable[[str], bool],
        on_loss: Callable[[], None] = lambda: None,
        once: bool = False,
    ) -> None:
        """`on_loss` is called if the target has less than the flow had written before the last
        sample. With `once` there is one: the time between two such runs counts for a stall."""
        self.flow = flow
        self._on_loss = on_loss
        self._is_heartbeats = is_heartbeats
        self._before: Snapshot | None = None
        self._lake = deployment.lake
        self._connections = deployment.connections
        self._targets = targets
        self._history = LagHistory()
        self._open = OpenTransactions()
        quiet = deployment.connections.topology.quiet_seconds(flow.name)
        self._stalls = Stalls(math.inf if once else quiet)
        self._logs = LogOffsets(flow, deployment.connections, targets)
        #: Partitions with lag at the last sample, and those that moved before it.
        self._lagging: set[TopicAndPartition] = set()
        self._moved: Set[TopicAndPartition] = frozenset()
        self._standing = StandingRows()
        self._recorded: Mapping[TopicAndPartition, SampleValues] = {}
        self._placed_by: object = None
        self._places: Mapping[TopicAndPartition, PartitionGeneration] = {}
        self._log: SampleLog[SampleValues] | None = None
        self._newest: datetime | None = None  # the latest time of a sample, by whichever clock
        self._pause = deployment.connections.topology.lake.pace.samples

    def sample(self, poll: Callable[[], Snapshot | None]) -> FlowLag | None:
        """Take a sample of each partition of the flow, as of a poll of its producer, and append
        those that are due.

        `poll` returns where the flow is now, or None if no poll completes in time: then nothing is
        sampled. A partition whose leader at the source does not answer has no sample; like one that
        is gone, it gets a single row that says so.
        """
        # before the poll, whose snapshot then covers all that the flow wrote below these ends
        before = self._before
        generations = {} if before is None else before.target_generations
        keys, names, target = self._logs.at_target(self._lagging | self._moved, generations)
        self._look_for_losses(names, target)
        self._before = snapshot = poll()
        if snapshot is None:
            return None
        self._moved = snapshot.moved_since(before)
        places = self._places_of(keys, snapshot.generations)
        starts, marks, ends = self._logs.at_source(places, self._lagging, self._moved)
        now = datetime.now(timezone.utc)
        log = self._log = self._log or self._seeded()
        stamp = time_of_sample(now, self._newest)
        self._newest = max(stamp, self._newest or stamp)
        held = self._look_for_transactions(now, ends, marks)
        producible = {topic: self._targets.produced_topic(topic) is not None for topic in names}
        seen = Seen(
            places,
            names,
            target=target,
            starts=starts,
            ends=ends,
            marks=marks,
            snapshot=snapshot,
            producible=producible,
        )
        some = self._standing.begin(seen, held | self._lagging)
        fresh = {
            key: {
                **self._row(key, seen, stamp),
                **self._held(key, max(ends[key], marks.get(key, 0))),
            }
            for key in (places if some is None else some)
            if key in ends and key in starts
        }
        for key, row in fresh.items():
            keep_known(row, log.newest(key))
        self._catch_up(places if some is None else some)
        self._add_lag(fresh, now)
        self._lagging = {key for key, row in fresh.items() if row["lag_records"]}
        if some is None:  # unanswered partitions stay known too: their lag goes on
            known = set(places.values())
            self._history.keep(known)
            self._stalls.keep(known)
        rows = fresh if some is None else _with(self._standing.rows, some, fresh)
        self._standing.stood(rows, self._lagging, now.timestamp())
        self._write(log, rows, None if some is None else fresh, now, stamp)
        self._standing.end(seen, held)
        late = [rows[key] for key in self._lagging if not self._is_heartbeats(key[0])]
        return FlowLag(
            sum(row["lag_records"] for row in late),
            max((row["lag_seconds"] for row in late), default=0.0),
            rows,
            silent=places.keys() - rows.keys() if len(rows) < len(places) else frozenset(),
        )

    def ask_for_all(self) -> None:
        """Let the next sample ask for the ends of all partitions, however many they are."""
        self._logs.ask_for_all()

    def _look_for_losses(
        self, names: Mapping[str, str], ends: Mapping[TopicAndPartition, int]
    ) -> None:
        """Compare the target's ends with what the flow had written by the sample before. An open
        transaction holds the committed end back: where that is low, ask for the log's own."""
        if (before := self._before) is None:
            return
        low = {
            place: written
            for key, written in before.written.items()
            if key[0] in names and key not in before.blocked
            if (place := (names[key[0]], key[1])) in ends and ends[place] < written
        }
        if low:
            target = self._connections.admin(self.flow.target)
            there = target.end_offsets(low.keys(), committed=False, skip_silent=True)
            if any(end < low[place] for place, end in there.items()):
                self._on_loss()

    def _look_for_transactions(
        self,
        now: datetime,
        ends: Mapping[TopicAndPartition, int],
        marks: Mapping[TopicAndPartition, int],
    ) -> Set[TopicAndPartition]:
        """Note partitions whose source log goes on behind its last stable offset, and the producer
        of each transaction that has stood there since the last sample. Returns the partitions."""
        held = {key: end for key, end in ends.items() if marks.get(key, 0) > end}
        self._open.observe(now.timestamp(), held)
        transactions = self._connections.open_transactions(self.flow.source, self._open.unknown())
        for key, transaction in transactions.items():
            self._open.name(key, transaction.producer_id, transaction.written_ms / 1000)
        return held.keys()

    def _held(self, key: TopicAndPartition, high_watermark: int) -> SampleRow:
        held = self._open.standing(key)
        return {
            "source_high_watermark": high_watermark,
            "transaction_since": _time_of(None if held is None else held.since),
            "transaction_producer_id": None if held is None else held.producer_id,
        }

    def _write(
        self,
        log: SampleLog[SampleValues],
        rows: Mapping[TopicAndPartition, SampleRow],
        fresh: Mapping[TopicAndPartition, SampleRow] | None,
        now: datetime,
        stamp: datetime,
    ) -> None:
        """Append the rows that are due. Unless `fresh` is None, others are as they were."""
        recorded = {
            key: SampleValues.of_row(row) for key, row in (rows if fresh is None else fresh).items()
        }
        if fresh is not None:
            recorded = {**self._recorded, **recorded}
            recorded = {key: recorded[key] for key in rows}
        due = log.due(
            now.timestamp(),
            recorded,
            self._lagging,
            lambda key: self._is_heartbeats(key[0]),
            None if fresh is None else fresh.keys(),
        )
        self._recorded = recorded
        lost = log.lost(rows)
        written = [{**rows[key], "sampled_at": stamp} for key in due]
        written += [
            {**self._named(key, stamp), **values.names_at_target()} for key, values in lost.items()
        ]
        self._lake.append("positions", rows_of("positions", written))
        log.note(now.timestamp(), {**{key: recorded[key] for key in due}, **dict.fromkeys(lost)})

    def _places_of(
        self, keys: Sequence[TopicAndPartition], generations: CurrentGenerations
    ) -> Mapping[TopicAndPartition, PartitionGeneration]:
        """The generation of each partition; the same object as before if none has changed."""
        if (keys, generations) != self._placed_by:
            self._placed_by = keys, generations
            self._places = {key: generations.place(key) for key in keys}
        return self._places

    def _catch_up(self, keys: Iterable[TopicAndPartition]) -> None:
        """Record that partitions stood still until the sample before, if not yet recorded."""
        at = self._standing.rested_at
        for row in self._standing.wake(keys):
            place = PartitionGeneration.from_row(row)
            reached = max(row["produced_end"], row["source_start"])
            self._history.observe(place, at, reached, row["source_end"])
            self._stalls.observe(place, at, row["produced_end"], 0)

    def _row(self, key: TopicAndPartition, seen: Seen, stamp: datetime) -> SampleRow:
        snapshot, name = seen.snapshot, seen.names[key[0]]
        target_end = seen.target.get((name, key[1]))
        return {
            **self._named(key, stamp),
            "source_start": seen.starts[key],
            "source_end": seen.ends[key],
            "staged_end": snapshot.covered_end(key),
            "produced_end": snapshot.produced_end(key, self._targets),
            "target_end": target_end,
            "target_topic": name or None,
            "mapped_end": snapshot.mapped.get(key, 0),
            "target_passed_end": target_end if snapshot.all_produced(key, self._targets) else None,
            # As of the polled producer: what it produced does not count for a newer generation.
            "target_generation": snapshot.target_generations.get(name, 0),
            "generation": snapshot.generations.generation(key),
        }

    def _named(self, key: TopicAndPartition, stamp: datetime) -> SampleRow:
        """The columns that every row of this flow has."""
        topic, partition = key
        seconds = max(self.flow.settings.sample_positions_interval_seconds, self._pause)
        place = {"flow": self.flow.name, "topic": topic, "partition": partition}
        return {**place, "sampled_at": stamp, "interval_seconds": round(seconds)}

    def _add_lag(self, rows: Mapping[TopicAndPartition, SampleRow], now: datetime) -> None:
        at = now.timestamp()
        for key, row in rows.items():
            produced, end = row["produced_end"], row["source_end"]
            # Records that the source has deleted are no longer waited for.
            reached = max(produced, row["source_start"])
            row["lag_records"] = waiting = max(0, end - reached)
            place = PartitionGeneration(*key, row["generation"])
            row["lag_seconds"] = self._history.observe(place, at, reached, end)
            row["stalled_since"] = _time_of(self._stalls.observe(place, at, produced, waiting))

    def _seeded(self) -> SampleLog[SampleValues]:
        """A log that begins with the last rows of an earlier process; lag goes on from there."""
        log: SampleLog[SampleValues] = SampleLog(self._pause)
        (latest,) = self._lake.ask("latest_sample", flow=self.flow.name)
        self._newest = latest["at"] and latest["at"].replace(tzinfo=timezone.utc)
        for row in newest_samples(self._lake, self.flow.name):
            key = (row["topic"], row["partition"])
            if row["source_end"] is None or row["produced_end"] is None:
                log.note(row["at"], {key: None})
                continue
            log.note(row["at"], {key: SampleValues.of_row(row)})
            if (row["source_high_watermark"] or 0) > row["source_end"]:
                seen_at = _seconds_of(row["transaction_since"], row["at"])
                self._open.seed(
                    key, Held(row["source_end"], seen_at, row["transaction_producer_id"])
                )
            produced, end = max(row["produced_end"], row["source_start"] or 0), row["source_end"]
            late = row["lag_seconds"] + row["held_at"] - row["at"] if end > produced else 0.0
            place = PartitionGeneration(*key, row["generation"] or 0)
            self._history.seed(place, row["held_at"], produced, end, late)
            if row["lag_records"]:
                since = _seconds_of(row["stalled_since"], row["at"])
                self._stalls.seed(place, row["produced_end"], since, row["held_at"])
        return log


def _with(
    rows: Mapping[TopicAndPartition, SampleRow],
    some: Collection[TopicAndPartition],
    fresh: Mapping[TopicAndPartition, SampleRow],
) -> Mapping[TopicAndPartition, SampleRow]:
    """`rows` with `fresh` ones for the partitions `some`; those without a fresh row have none."""
    gone = [key for key in some if key not in fresh and key in rows]
    rows = {**rows, **fresh}
    return {key: row for key, row in rows.items() if key not in gone} if gone else rows


def _time_of(seconds: float | None) -> datetime | None:
    """A time of a row, by seconds since 1970."""
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)


def _seconds_of(time: datetime | None, unknown: float) -> float:
    """Seconds since 1970 of a time that the lake gave; `unknown` where it has none."""
    return unknown if time is None else time.replace(tzinfo=timezone.utc).timestamp()
