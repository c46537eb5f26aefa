"""A source cluster and what the lake knows of it, in memory: in place of `ClusterSource` and
`LakeLandingStore`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from mirrorlake.kafka.values import Row
from mirrorlake.landing.plan import LandingPlanner
from mirrorlake.landing.source_comparison import (
    CurrentGenerations,
    Decision,
    SourceTopic,
    TopicGeneration,
)
from mirrorlake.offsets.positions import LogEnd, LogEnds, PartitionGeneration, TopicAndPartition

T0, T1 = ("t", 0), ("t", 1)


@dataclass
class Log:
    """A partition at the source."""

    rows: list[Row] = field(default_factory=list)
    start: int = 0
    end: int = 0
    epoch: int = 0

    def write(self, tag: str, count: int) -> None:
        for offset in range(self.end, self.end + count):
            self.rows.append(Row(offset, 0, None, f"{tag}{offset}".encode(), self.epoch))
        self.end += count

    def truncate(self, start: int) -> None:
        self.start, self.end = start, max(start, self.end)
        self.rows = [row for row in self.rows if row.offset >= start]

    def rewind(self, end: int) -> None:
        """The leader that lacks what is behind `end` takes over."""
        self.rows, self.end = [row for row in self.rows if row.offset < end], end
        self.epoch += 1


@dataclass
class Model:
    """A source cluster and what the lake knows of it, both in memory."""

    logs: dict[TopicAndPartition, Log] = field(default_factory=lambda: {T0: Log(), T1: Log()})
    ids: dict[str, str] = field(default_factory=lambda: {"t": "id"})
    leaderless: set[TopicAndPartition] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)
    #: Topics that are there, or may be, and are not shown; and why, None where they may not be.
    hidden: dict[str, str | None] = field(default_factory=dict)
    #: Topics that are shown and not described, and why.
    undescribed: dict[str, str] = field(default_factory=dict)
    silent: set[TopicAndPartition] = field(default_factory=set)
    staged: dict[tuple[str, int, int], dict[int, Row]] = field(default_factory=dict)
    known: CurrentGenerations = field(default_factory=CurrentGenerations)
    told: list[Decision] = field(default_factory=list)
    samples: dict[PartitionGeneration, int] = field(default_factory=dict)
    leaders: dict[TopicAndPartition, int] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    reads: int = 0
    newest: int = -1
    now: float = 0.0

    def topics(self) -> Mapping[str, SourceTopic]:
        counts = {name: sum(1 for topic, _ in self.logs if topic == name) for name in self.ids}
        lost = {name: frozenset(p for t, p in self.leaderless if t == name) for name in self.ids}
        shown = {
            name: SourceTopic(self.ids[name], counts[name], lost[name], name not in self.unreadable)
            for name in self.ids.keys() - self.hidden.keys()
        }
        odd = self.undescribed.items()
        return shown | {name: SourceTopic("", 0, undescribed=why) for name, why in odd}

    def denied(self, topics: Collection[str]) -> Mapping[str, str | None]:
        return {name: why for name, why in self.hidden.items() if name in topics}

    def ends(self, keys: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, LogEnds]:
        logs = {key: self.logs[key] for key in keys if key not in self.silent}
        return {key: LogEnds(log.start, log.end, log.epoch) for key, log in logs.items()}

    def high_watermarks(
        self, keys: Collection[TopicAndPartition]
    ) -> Mapping[TopicAndPartition, LogEnd]:
        return {key: LogEnd(log.end, log.epoch) for key, log in self.ends(keys).items()}

    def rows(self, offsets: Mapping[TopicAndPartition, int]) -> Mapping[TopicAndPartition, Row]:
        self.reads += len(offsets)
        found = {
            key: [row for row in self.logs[key].rows if row.offset >= at]
            for key, at in offsets.items()
        }
        return {key: rows[0] for key, rows in found.items() if rows}

    def current_generations(self) -> CurrentGenerations:
        return self.known

    def begin(self, begun: Mapping[str, TopicGeneration]) -> None:
        self.known = replace(self.known, topics={**self.known.topics, **begun})

    def decisions(self) -> Collection[Decision]:
        return list(self.told)

    def staged_ends(self) -> Mapping[TopicAndPartition, tuple[int, int]]:
        found: dict[TopicAndPartition, tuple[int, int]] = {}
        for (topic, partition, generation), rows in sorted(self.staged.items()):
            found[topic, partition] = (generation, max(rows) + 1)
        return found

    def newest_batch(self) -> int:
        return self.newest

    def _since(self, key: TopicAndPartition, generation: int) -> list[dict[int, Row]]:
        """What is staged of a partition in the generations since one."""
        places = sorted(
            place for place in self.staged if place[:2] == key and place[2] >= generation
        )
        return [self.staged[place] for place in places]

    def staged_firsts(
        self, since: Mapping[TopicAndPartition, int]
    ) -> Mapping[TopicAndPartition, int]:
        held = {key: self._since(key, generation) for key, generation in since.items()}
        return {key: min(rows[0]) for key, rows in held.items() if rows}

    def staged_rows(
        self, offsets: Mapping[TopicAndPartition, int], since: Mapping[TopicAndPartition, int]
    ) -> Mapping[TopicAndPartition, Row]:
        return {
            key: Row(at, 0, None, None, forgotten_to=at)
            if at in self.deleted
            else replace(rows[at], epoch=None)
            for key, at in offsets.items()
            for rows in self._since(key, since[key])
            if at in rows
        }

    def seen(self, places: Collection[PartitionGeneration]) -> Mapping[PartitionGeneration, int]:
        return {place: self.samples[place] for place in places if place in self.samples}

    def epochs(self) -> Mapping[TopicAndPartition, int]:
        return self.leaders

    def note_epochs(self, epochs: Mapping[TopicAndPartition, int]) -> None:
        self.leaders = dict(epochs)

    def planner(self) -> LandingPlanner:
        return LandingPlanner("east", self, self, lambda: self.now)

    def stage(self, key: TopicAndPartition, first: int, generation: int = 0) -> None:
        """What a query lands that reads up to the end."""
        rows = {row.offset: row for row in self.logs[key].rows if row.offset >= first}
        if rows:
            self.staged.setdefault((*key, generation), {}).update(rows)

    def land(self, planner: LandingPlanner) -> Mapping[TopicAndPartition, int]:
        """Plan, tell, and land all that is planned; returns where partitions began."""
        planned = planner.plan({})
        for loss in planned.losses:
            self.told.append(
                Decision(
                    loss.topic,
                    loss.partition,
                    loss.kind,
                    last_offset=loss.last,
                    open=True,
                    resolution=None,
                )
            )
        for key, first in planned.plan.starts.items():
            self.stage(key, first, planned.plan.generations.get(key, 0))
        return planned.plan.starts
