"""Samples of where every partition of a flow is: rows of `positions`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.samples import lag_seeds
from mirrorlake.naming.policy import called_heartbeats
from mirrorlake.offsets.lag import LagHistory
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.run.snapshot import Snapshot


@dataclass(frozen=True)
class FlowLag:
    """How late a flow was at one sample, without its heartbeats: records of all its partitions together, seconds of the
    latest one."""

    records: int
    seconds: float


@dataclass(frozen=True)
class _TargetEnds:
    """A flow's partitions, what their topics are called at the target, and the ends there (of those that are made)."""

    keys: Sequence[TopicAndPartition]
    names: Mapping[str, str]
    target: Mapping[TopicAndPartition, int]

    def target_end(self, key: TopicAndPartition) -> int | None:
        """The end of the partition at the target; None when it is not made yet."""
        return self.target.get((self.names[key[0]], key[1]))


def reached(snapshot: Snapshot, targets: TargetTopics, key: TopicAndPartition) -> tuple[int, int]:
    """How far a partition is landed and how far it is produced, as of a poll.

    What a poll found nothing behind has been produced: the flow is behind the transaction markers there too.
    """
    floor = snapshot.floors.get(key, 0)
    covered = max(floor, snapshot.covered.get(key, floor))
    return covered, covered if _nothing_left(snapshot, targets, key) else floor


def _nothing_left(snapshot: Snapshot, targets: TargetTopics, key: TopicAndPartition) -> bool:
    """Whether a poll found that all of a partition has been produced."""
    waits = key in snapshot.blocked or key[0] in snapshot.left_out or targets.produced_topic(key[0]) is None
    return snapshot.caught_up and not waits


class Sampler:
    """Samples one flow, and remembers for how long its partitions lag. For one thread."""

    def __init__(self, lake: Lake, connections: Connections, flow: ResolvedFlow, targets: TargetTopics) -> None:
        self.flow = flow
        self._lake = lake
        self._connections = connections
        self._targets = targets
        self._history = LagHistory()
        self._seeded = False

    def sample(self, poll: Callable[[], Snapshot | None]) -> FlowLag | None:
        """Append one row of `positions` per partition of the flow, as of a poll of its producer.

        `poll` gives where the flow is now, or None when it does not come to a poll in time: then nothing is sampled.
        A partition whose leader at the source does not answer has no row.
        """
        target_ends = (
            self._target_ends()
        )  # before the poll, which then knows of all that the flow wrote in front of these ends
        snapshot = poll()
        if snapshot is None:
            return None
        source = self._connections.admin(self.flow.source)
        starts, ends = source.told_starts(target_ends.keys), source.told_ends(target_ends.keys)
        now = datetime.now(timezone.utc)
        told = [key for key in ends if key in starts]
        rows = [self._row(key, target_ends, (starts[key], ends[key]), snapshot, now) for key in told]
        self._add_seconds(rows, now)
        self._history.keep(set(target_ends.keys))  # of those that were not answered too: their lag goes on
        self._lake.append("positions", rows_of("positions", rows))
        lags = [
            (int(str(row["lag_records"])), float(str(row["lag_seconds"])))
            for row in rows
            if not called_heartbeats(str(row["topic"]))
        ]
        return FlowLag(sum(records for records, _ in lags), max((seconds for _, seconds in lags), default=0.0))

    def _target_ends(self) -> _TargetEnds:
        source, target = self._connections.admin(self.flow.source), self._connections.admin(self.flow.target)
        topics = {name: info for name, info in source.topics().items() if self._targets.selection.selects(name)}
        keys = [(name, partition) for name, info in topics.items() for partition in range(info.partitions)]
        names = {name: self._targets.remote_topic(name) or "" for name in topics}
        there = target.topics()
        remote = [(names[t], p) for t, p in keys if names[t] in there and p < there[names[t]].partitions]
        return _TargetEnds(keys, names, target.told_ends(remote))

    def _row(
        self,
        key: TopicAndPartition,
        target_ends: _TargetEnds,
        bounds: tuple[int, int],
        snapshot: Snapshot,
        now: datetime,
    ) -> dict[str, object]:
        topic, partition = key
        start, end = bounds
        covered, produced = reached(snapshot, self._targets, key)
        target_end = target_ends.target_end(key)
        return {
            "flow": self.flow.name,
            "topic": topic,
            "partition": partition,
            "sampled_at": now,
            "source_start": start,
            "source_end": end,
            "staged_end": covered,
            "produced_end": produced,
            "target_end": target_end,
            # What the source has forgotten is no longer waited for.
            "lag_records": max(0, end - max(produced, start)),
            "target_topic": target_ends.names[topic] or None,
            "mapped_end": snapshot.mapped.get(key, 0),
            "target_passed_end": target_end if _nothing_left(snapshot, self._targets, key) else None,
            # Of the producer that the poll was at: what it had produced is nothing to a generation that began since.
            "target_generation": snapshot.target_generations.get(target_ends.names[topic], 0),
        }

    def _add_seconds(self, rows: Sequence[dict[str, object]], now: datetime) -> None:
        if not self._seeded and any(row["lag_records"] for row in rows):
            self._seed()
        for row in rows:
            key = (str(row["topic"]), int(str(row["partition"])))
            produced, start = int(str(row["produced_end"])), int(str(row["source_start"]))
            end = int(str(row["source_end"]))
            row["lag_seconds"] = self._history.observe(key, now.timestamp(), max(produced, start), end)

    def _seed(self) -> None:
        """What the newest samples of an earlier process say; asked for only when something lags."""
        self._seeded = True
        for row in lag_seeds(self._lake, self.flow.name):
            key = (row["topic"], row["partition"])
            if not self._history.knows(key):
                self._history.seed(key, row["at"], row["produced"], row["source_end"], row["lag_seconds"])
