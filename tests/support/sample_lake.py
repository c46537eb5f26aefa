"""A lake with some hours of plausible history, written straight into its tables: no Kafka, some
seconds.

Three flows. `east->west` is healthy except for a spike of load two hours before the end, which
shows as lag and latency of `orders`. `west->east` is small and calm. `east->lab` has a partition
(`clicks` 5) that the target refused 25 minutes before the end: it stands still, its lag grows, an
incident is open. Groups stand exact, held back, and gone.

The same arguments give the same rows. Staged records are not written: views of the stage have
nothing to say here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.groups.checkpoint_plan import GONE, HELD_BACK
from mirrorlake.groups.sync_plan import ACTIVE
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake

TIME = pa.timestamp("us", tz="UTC")
#: Seconds between two batches, and between two samples of positions.
STEP = 30
#: When the spike began and how long it took; when the partition was refused: minutes before the
#: end.
SPIKE, SPIKE_MINUTES, REFUSED = 130, 12, 25


@dataclass(frozen=True)
class Stream:
    """One topic of a flow: its partitions, and records a second of each at the mean."""

    flow: str
    topic: str
    partitions: int
    rate: float
    record_bytes: int = 420
    target: str = ""

    @property
    def target_topic(self) -> str:
        """The name at the target, after the default policy."""
        return self.target or f"{self.flow.split('->')[0]}.{self.topic}"


STREAMS = (
    Stream("east->west", "orders", 6, 42, 610),
    Stream("east->west", "payments", 4, 18, 380),
    Stream("east->west", "shipments", 3, 7, 250),
    Stream("east->west", "heartbeats", 1, 1, 60),
    Stream("west->east", "inventory", 3, 11, 190),
    Stream("west->east", "heartbeats", 1, 1, 60),
    Stream("east->lab", "orders", 6, 42, 610),
    Stream("east->lab", "clicks", 8, 55, 140),
    Stream("east->lab", "heartbeats", 1, 1, 60),
)
FLOWS = tuple(dict.fromkeys(stream.flow for stream in STREAMS))
REFUSED_AT = ("east->lab", "clicks", 5)


def sample_lake(
    spark: SparkSession,
    directory: Path,
    hours: float = 6,
    until: datetime | None = None,
    seed: int = 7,
) -> Lake:
    """Make a lake in `directory`/lake and fill it with `hours` of history that end at `until`
    (now)."""
    lake = empty_lake(spark, directory)
    fill(lake, hours, until, seed)
    return lake


def empty_lake(spark: SparkSession, directory: Path) -> Lake:
    """Make a lake in `directory`/lake whose tables hold nothing."""
    return open_lake(spark, Location(path="lake"), directory)


def fill(lake: Lake, hours: float = 6, until: datetime | None = None, seed: int = 7) -> None:
    """Append `hours` of history."""
    end = (until or datetime.now(timezone.utc)).replace(microsecond=0)
    history = _History(end, hours, np.random.default_rng(seed))
    for table, rows in (
        ("latency", history.latency()),
        ("positions", history.positions()),
        ("offset_map", history.offset_map()),
        ("checkpoints", history.checkpoints()),
        ("incidents", history.incidents()),
        ("changes", history.changes()),
        ("clusters", history.clusters()),
        ("audits", history.audits()),
        ("objectives", history.objectives()),
    ):
        lake.append(table, rows)


@dataclass(frozen=True)
class _Partition:
    """What happened to one partition, step by step: records made, records mirrored (cumulated), and
    latency in ms."""

    stream: Stream
    number: int
    made: np.ndarray
    mirrored: np.ndarray
    delay: np.ndarray

    @property
    def lag(self) -> np.ndarray:
        return self.made - self.mirrored


#: Source offsets that one range of `audits` does not reach over (verify/plan.py).
BLOCK = 100_000


class _History:
    def __init__(self, end: datetime, hours: float, rng: np.random.Generator) -> None:
        self.end = end
        self.rng = rng
        self.steps = int(hours * 3600 / STEP)
        self.minutes_left = (self.steps - 1 - np.arange(self.steps)) * STEP / 60
        self.times = [end - timedelta(minutes=float(left)) for left in self.minutes_left]
        self.all = [
            self._partition(stream, number)
            for stream in STREAMS
            for number in range(stream.partitions)
        ]

    def _partition(self, stream: Stream, number: int) -> _Partition:
        spiked = (self.minutes_left <= SPIKE) & (self.minutes_left > SPIKE - SPIKE_MINUTES)
        # minutes since the spike was over
        after = np.clip(SPIKE - SPIKE_MINUTES - self.minutes_left, 0, None)
        tide = 1 + 0.25 * np.sin(self.minutes_left / 97)
        rate = stream.rate * tide * (1 + 0.06 * number)
        steady = stream.topic == "heartbeats"
        if stream.flow == "east->west" and stream.topic == "orders":
            rate = np.where(spiked, rate * 5, rate)
        counts = np.full(self.steps, STEP) if steady else self.rng.poisson(rate * STEP)
        made = 1000 * (number + 1) + np.cumsum(counts)
        delay = (
            1050
            * self.rng.lognormal(0, 0.12, self.steps)
            * {"west->east": 0.8, "east->lab": 1.25}.get(stream.flow, 1)
        )
        if stream.flow == "east->west":
            weight = {"orders": 1.0, "payments": 0.25, "shipments": 0.15, "heartbeats": 0.12}[
                stream.topic
            ]
            building = np.clip(SPIKE - self.minutes_left, 0, SPIKE_MINUTES) / SPIKE_MINUTES
            fading = np.exp(-after / 5)
            delay = delay + weight * 16_000 * (1 + 0.1 * number) * np.where(
                after > 0, fading, building
            )
        waiting = np.minimum((delay / 1000 * counts / STEP).astype(int), made - made[0] + counts[0])
        mirrored = np.maximum.accumulate(made - waiting)
        if (stream.flow, stream.topic, number) == REFUSED_AT:
            stands = np.argmax(self.minutes_left <= REFUSED)
            mirrored[stands:] = mirrored[stands]
        return _Partition(stream, number, made, mirrored, delay)

    def latency(self) -> pa.Table:
        parts = []
        for item in self.all:
            produced = np.diff(item.mirrored, prepend=item.mirrored[0] - 1)
            kept = np.flatnonzero(produced > 0)
            p50 = item.delay[kept]
            landing = p50 * 0.62
            tail = self.rng.lognormal(0.72, 0.08, len(kept))
            columns = {
                "batch_id": [int(self.times[i].timestamp() * 1000) for i in kept],
                "partition": np.full(len(kept), item.number),
                "record_count": produced[kept],
                "byte_count": produced[kept] * item.stream.record_bytes,
                "produced_at": [self.times[i] for i in kept],
            }
            for name, base in (("landing", landing), ("replication", p50)):
                columns |= {
                    f"{name}_min_ms": base * 0.35,
                    f"{name}_avg_ms": base * 1.04,
                    f"{name}_p50_ms": base,
                    f"{name}_p95_ms": base * (0.5 + tail * 0.6),
                    f"{name}_p99_ms": base * (0.5 + tail * 0.8),
                    f"{name}_max_ms": base * (0.5 + tail * 0.95),
                }
            parts.append(_named(item.stream, columns, len(kept)))
        return _table(parts)

    def positions(self) -> pa.Table:
        parts = []
        for item in self.all:
            speed = np.maximum(np.gradient(item.made) / STEP, 0.1)
            seconds = np.where(item.lag > 0, np.maximum(item.lag / speed, 0.1), 0.0)
            columns = {
                "partition": np.full(self.steps, item.number),
                "sampled_at": self.times,
                "source_start": np.zeros(self.steps, int),
                "source_end": item.made,
                "staged_end": item.made,
                "produced_end": item.mirrored,
                "target_end": item.mirrored + 40 * (item.number + 1),
                "lag_records": item.lag,
                "lag_seconds": seconds,
                "target_topic": [item.stream.target_topic] * self.steps,
            }
            parts.append(_named(item.stream, columns, self.steps))
        return _table(parts)

    def offset_map(self) -> pa.Table:
        """One run a partition and half an hour."""
        rows = []
        every = 1800 // STEP
        for item in self.all:
            cuts = [int(item.mirrored[i]) for i in range(0, self.steps, every)] + [
                int(item.mirrored[-1])
            ]
            for number, (first, behind) in enumerate(zip(cuts, cuts[1:], strict=False)):
                if behind <= first:
                    continue
                shift = 40 * (item.number + 1)
                at = self.times[min(self.steps - 1, (number + 1) * every)]
                segment = {"source_first": first, "stride": 1, "target_first": first + shift}
                rows.append(
                    {
                        "flow": item.stream.flow,
                        "topic": item.stream.topic,
                        "partition": item.number,
                        "source_first": first,
                        "source_last": behind - 1,
                        "target_topic": item.stream.target_topic,
                        "target_partition": item.number,
                        "target_first": first + shift,
                        "target_last": behind - 1 + shift,
                        "record_count": behind - first,
                        "produced_at": at,
                        "batch_id": int(at.timestamp() * 1000),
                        "generation": 0,
                        "segments": [{**segment, "record_count": behind - first}],
                    }
                )
        longs = (
            "source_first",
            "source_last",
            "target_first",
            "target_last",
            "record_count",
            "batch_id",
        )
        kinds = {name: pa.int64() for name in longs} | {
            "partition": pa.int32(),
            "target_partition": pa.int32(),
        }
        kinds |= {"generation": pa.int32(), "produced_at": TIME}
        names = ("source_first", "stride", "target_first", "record_count")
        kinds["segments"] = pa.list_(pa.struct([(name, pa.int64()) for name in names]))
        return _rows(rows, kinds)

    def checkpoints(self) -> pa.Table:
        rows: list[dict[str, object]] = []
        for flow, group, topics, ahead, reason in (
            ("east->west", "billing", ("orders", "payments"), (), None),
            ("east->west", "warehouse", ("orders", "shipments"), (), None),
            ("east->west", "fraud-scoring", ("payments",), (), ACTIVE),
            ("east->west", "old-reporting", ("shipments",), (), GONE),
            ("east->lab", "recommendations", ("clicks",), (5,), None),
            ("east->lab", "funnel", ("clicks", "orders"), (5,), None),
            ("west->east", "stock-sync", ("inventory",), (), None),
        ):
            for item in self.all:
                if item.stream.flow != flow or item.stream.topic not in topics:
                    continue
                held_back = item.number in ahead and item.stream.topic == "clicks"
                rows += self._checkpoint(item, group, held_back, reason)
        kinds = {
            "source_position": pa.int64(),
            "target_position": pa.int64(),
            "partition": pa.int32(),
        }
        return _rows(rows, {**kinds, "checkpointed_at": TIME, "synced": pa.bool_()})

    def _checkpoint(
        self, item: _Partition, group: str, held_back: bool, reason: str | None
    ) -> Iterator[dict[str, object]]:
        """The group's position some minutes ago, and now."""
        behind = 30 + 25 * (len(group) + item.number)
        for step in (self.steps - 1 - 5 * 60 // STEP, self.steps - 1):
            source = int(item.made[step]) - 60 if held_back else int(item.mirrored[step]) - behind
            safe = min(source, int(item.mirrored[step]))
            yield {
                "flow": item.stream.flow,
                "group_id": group,
                "topic": item.stream.topic,
                "partition": item.number,
                "source_position": source,
                "target_topic": item.stream.target_topic,
                "target_position": safe + 40 * (item.number + 1),
                "metadata": "",
                "checkpointed_at": self.times[step] - timedelta(seconds=3 + item.number),
                "synced": reason is None and not held_back,
                "reason": HELD_BACK if held_back else reason,
            }

    def incidents(self) -> pa.Table:
        flow, topic, partition = REFUSED_AT
        refused = next(
            item
            for item in self.all
            if (item.stream.flow, item.stream.topic, item.number) == REFUSED_AT
        )
        offset = int(refused.mirrored[-1])
        rows = [
            self._incident(
                flow,
                REFUSED,
                "target_refused",
                topic,
                partition,
                offset,
                None,
                None,
                f"cluster lab refused the record of clicks partition {partition} at "
                f"offset {offset}: larger than max.message.bytes of east.clicks "
                "(1048588)",
            ),
            self._incident(
                "east->lab",
                305,
                "cluster_unreachable",
                None,
                None,
                None,
                8,
                "it came through again",
                "no broker of cluster lab answered at lab-1:9093 within 10 s",
            ),
            self._incident(
                "east->west",
                260,
                "source_truncated",
                "shipments",
                1,
                1180,
                22,
                "continue",
                "retention removed offsets 1180 to 1234 of shipments partition 1 before "
                "they were landed",
            ),
            self._incident(
                "east->west",
                SPIKE - 4,
                "control_group_offsets",
                None,
                None,
                None,
                6,
                "it came through again",
                "cluster west did not take the positions of some groups: request timed out",
            ),
            self._incident(
                "west->east",
                95,
                "topic_refused",
                "inventory-tmp",
                None,
                None,
                14,
                "it came through again",
                "cluster east would not make west.inventory-tmp: policy violation",
            ),
        ]
        kinds = {"at": TIME, "resolved_at": TIME, "partition": pa.int32()}
        return _rows(rows, {**kinds, "first_offset": pa.int64(), "last_offset": pa.int64()})

    def _incident(
        self,
        flow: str,
        minutes: float,
        kind: str,
        topic: str | None,
        partition: int | None,
        offset: int | None,
        lasted: float | None,
        resolution: str | None,
        detail: str,
    ) -> dict[str, object]:
        at = self.end - timedelta(minutes=minutes)
        resolved = None if lasted is None else at + timedelta(minutes=lasted)
        last = None if offset is None else offset + (54 if kind == "source_truncated" else 0)
        return {
            "flow": flow,
            "at": at,
            "kind": kind,
            "topic": topic,
            "partition": partition,
            "first_offset": offset,
            "last_offset": last,
            "detail": detail,
            "resolved_at": resolved,
            "resolution": resolution,
        }

    def changes(self) -> pa.Table:
        begin = float(self.minutes_left[0])
        rows = [
            self._change(
                stream.flow,
                begin - 1,
                "topic",
                stream.target_topic,
                None,
                f"partitions={stream.partitions}, factor=3",
            )
            for stream in STREAMS
        ]
        rows += [
            self._change(
                "east->west",
                begin - 2,
                "config",
                "east.orders",
                "retention.ms=604800000",
                "retention.ms=1209600000",
            ),
            self._change(
                "east->west",
                begin - 2,
                "acl",
                "User:billing READ topic east.orders",
                None,
                "ALLOW from *",
            ),
            self._change(
                "east->west", 240, "partitions", "east.orders", "4", "partitions=6, factor=3"
            ),
            self._change(
                "east->lab",
                231,
                "config",
                "east.clicks",
                None,
                "max.message.bytes=2097152",
                "refused",
                "lab: not authorized to alter configs of topic east.clicks",
            ),
            self._change(
                "east->lab",
                171,
                "config",
                "east.clicks",
                None,
                "max.message.bytes=2097152",
                "refused",
                "lab: not authorized to alter configs of topic east.clicks",
            ),
            self._change(
                "west->east",
                95,
                "topic",
                "west.inventory-tmp",
                None,
                "partitions=1, factor=3",
                "refused",
                "policy violation",
            ),
            self._change(
                "west->east", 81, "topic", "west.inventory-tmp", None, "partitions=1, factor=3"
            ),
            self._change(
                "east->west", 64, "acl", "User:audit READ topic east.payments", None, "ALLOW from *"
            ),
            self._change(
                "east->west",
                63,
                "acl",
                "User:intern READ topic east.payments",
                "ALLOW from *",
                None,
            ),
            self._change("east->west", 38, "group", "billing east.orders-2", "1204", "1377"),
            self._change(
                "east->west",
                12,
                "config",
                "east.shipments",
                "cleanup.policy=delete",
                "cleanup.policy=compact",
            ),
        ]
        return _rows(rows, {"at": TIME})

    def _change(
        self,
        flow: str,
        minutes: float,
        kind: str,
        resource: str,
        before: str | None,
        after: str | None,
        outcome: str = "done",
        error: str | None = None,
    ) -> dict[str, object]:
        at = self.end - timedelta(minutes=minutes)
        return {
            "flow": flow,
            "at": at,
            "kind": kind,
            "resource": resource,
            "before": before,
            "after": after,
            "outcome": outcome,
            "error": error,
        }

    def clusters(self) -> pa.Table:
        rows = [
            {
                "alias": alias,
                "cluster_id": f"{alias}-cluster-id-0000000",
                "first_seen": self.times[0],
                "last_seen": self.end,
            }
            for alias in ("east", "west", "lab")
        ]
        return _rows(rows, {"first_seen": TIME, "last_seen": TIME})

    def objectives(self) -> pa.Table:
        held_to = {
            "lag_seconds": 60,
            "latency_p99_ms": 5_000,
            "heartbeat_seconds": 60,
            "stuck_seconds": 600,
        }
        run = {"enabled": True, "heartbeats": True, "gaps": True, "mode": "continuous"}
        rows = [
            {"flow": flow, **held_to, **run, "since": self.times[0], "noted_at": self.times[0]}
            for flow in sorted({stream.flow for stream in STREAMS})
        ]
        kinds = dict.fromkeys(held_to, pa.int64()) | dict.fromkeys(
            ("enabled", "heartbeats", "gaps"), pa.bool_()
        )
        return _rows(rows, {**kinds, "since": TIME, "noted_at": TIME})

    def audits(self) -> pa.Table:
        rows = []
        for item in self.all:
            if item.stream.flow != "east->west" or item.stream.topic == "heartbeats":
                continue
            begin, end = int(item.mirrored[0]), int(item.mirrored[self.steps // 2])
            cuts = [begin, *range((begin // BLOCK + 1) * BLOCK, end, BLOCK), end]
            for block, (first, behind) in enumerate(zip(cuts, cuts[1:], strict=False)):
                count, text = behind - first, f"{item.number:02x}{first:06x}{behind:08x}"
                rows.append(
                    {
                        "flow": item.stream.flow,
                        "topic": item.stream.topic,
                        "partition": item.number,
                        "first_offset": first,
                        "last_offset": behind - 1,
                        "source_count": count,
                        "stage_count": count,
                        "target_count": count,
                        "source_hash": text,
                        "stage_hash": text,
                        "target_hash": text,
                        "verdict": "proven",
                        "audited_at": self.end
                        - timedelta(minutes=50 - item.number, seconds=-7 * block),
                    }
                )
        longs = ("first_offset", "last_offset", "source_count", "stage_count", "target_count")
        return _rows(
            rows,
            {name: pa.int64() for name in longs} | {"partition": pa.int32(), "audited_at": TIME},
        )


def _named(stream: Stream, columns: dict[str, object], length: int) -> pa.Table:
    """Columns of one partition with the types that the tables have: *_avg_ms and seconds are
    DOUBLE."""
    arrays: dict[str, pa.Array] = {
        "flow": pa.array([stream.flow] * length, pa.string()),
        "topic": pa.array([stream.topic] * length, pa.string()),
    }
    for name, values in columns.items():
        kind: pa.DataType = pa.int64()
        if name.endswith(("_avg_ms", "_seconds")):
            kind = pa.float64()
        elif name.endswith("_at"):
            kind = TIME
        elif name == "partition":
            kind = pa.int32()
        elif name == "target_topic":
            kind = pa.string()
        given = values.astype(kind.to_pandas_dtype()) if isinstance(values, np.ndarray) else values
        arrays[name] = pa.array(given, kind)
    return pa.table(arrays)


def _table(parts: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(parts).combine_chunks()


def _rows(rows: Sequence[dict[str, object]], kinds: dict[str, pa.DataType]) -> pa.Table:
    """Rows as a table; columns without a kind are texts."""
    return pa.Table.from_pylist(
        list(rows), schema=pa.schema([(name, kinds.get(name, pa.string())) for name in rows[0]])
    )
