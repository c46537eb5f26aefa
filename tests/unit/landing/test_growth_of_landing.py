"""What a plan of landing, and of its batches, costs grows no faster than the partitions."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.kafka.values import Row
from mirrorlake.lake.definitions import definition
from mirrorlake.lake.place import place_of
from mirrorlake.landing.excluded import ExcludedPartitions
from mirrorlake.landing.job import Part
from mirrorlake.landing.landing_incidents import LandingIncidents
from mirrorlake.landing.pace import Pace
from mirrorlake.landing.plan import LandingPlanner
from mirrorlake.landing.ranges import (
    news_of,
    next_ranges,
    offsets_document,
    read_document,
    shared_out,
)
from mirrorlake.landing.source_comparison import (
    Branch,
    CurrentGenerations,
    Decision,
    SourceTopic,
    TopicGeneration,
)
from mirrorlake.landing.stage_file import StageFile
from mirrorlake.landing.stage_rows import Sizes
from mirrorlake.naming.naming import Naming
from mirrorlake.naming.selection import TopicSelection
from mirrorlake.offsets.positions import (
    LogEnd,
    LogEnds,
    PartitionGeneration,
    Ranges,
    TopicAndPartition,
)
from tests.support.growth import LINEAR, SORTED, Made, Name, growth, steps
from tests.support.landing import rows

TOPICS = 10


def keys(size: int) -> list[TopicAndPartition]:
    return [(Name(f"t{n % TOPICS}"), n // TOPICS) for n in range(size)]


class Side:
    """A source, and the stage of it: each partition has the same."""

    def __init__(self, size: int, log: LogEnds, staged: int | None, **others: Any) -> None:
        self.keys, self.log, self.staged = keys(size), log, staged
        self.topic_id, self.open = "id", list[Decision]()
        self.known = CurrentGenerations({topic: TopicGeneration(0, "id") for topic, _ in self.keys})
        self.leaders: Mapping[TopicAndPartition, int] = dict.fromkeys(self.keys, 0)
        self.staged_epoch = 0
        self.leaderless: frozenset[int] = frozenset()
        self.__dict__.update(others)

    def topics(self) -> Mapping[str, SourceTopic]:
        count = len(self.keys) // TOPICS
        topics = dict.fromkeys(topic for topic, _ in self.keys)
        return {topic: SourceTopic(self.topic_id, count, self.leaderless) for topic in topics}

    def denied(self, topics: Collection[str]) -> Mapping[str, str | None]:
        return {}

    def ends(self, wanted: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, LogEnds]:
        return dict.fromkeys(wanted, self.log)

    def high_watermarks(
        self, wanted: Collection[TopicAndPartition]
    ) -> Mapping[TopicAndPartition, LogEnd]:
        return {key: LogEnd(log.end, log.epoch) for key, log in self.ends(wanted).items()}

    def rows(self, offsets: Mapping[TopicAndPartition, int]) -> Mapping[TopicAndPartition, Row]:
        there = {key: at for key, at in offsets.items() if at < self.log.end}
        return {key: Row(at, 0, None, b"v", self.log.epoch) for key, at in there.items()}

    def current_generations(self) -> CurrentGenerations:
        return self.known

    def begin(self, _: object) -> None:
        """Nothing of it is kept."""

    def decisions(self) -> Collection[Decision]:
        return self.open

    def staged_ends(self) -> Mapping[TopicAndPartition, tuple[int, int]]:
        return {} if self.staged is None else dict.fromkeys(self.keys, (0, self.staged))

    def newest_batch(self) -> int:
        return -1

    def staged_firsts(self, since: Collection[TopicAndPartition]) -> Mapping[Any, int]:
        return dict.fromkeys(since, 0)

    def staged_rows(
        self, offsets: Mapping[TopicAndPartition, int], _: object
    ) -> Mapping[TopicAndPartition, Row]:
        return {
            key: Row(at, 0, None, b"v" if at < 7 else b"other", self.staged_epoch)
            for key, at in offsets.items()
        }

    def epochs(self) -> Mapping[TopicAndPartition, int]:
        return self.leaders

    def note_epochs(self, epochs: Mapping[TopicAndPartition, int]) -> None:
        self.leaders = epochs

    def seen(self, places: Collection[PartitionGeneration]) -> Mapping[PartitionGeneration, int]:
        return dict.fromkeys(places, 10)


LOST = [
    Decision(topic, number, "source_truncated", last_offset=9, open=True, resolution=None)
    for topic, number in keys(240)
]
SIDES: dict[str, Callable[[int], Side]] = {
    "all are new": lambda size: Side(size, LogEnds(0, 10, 0), None, known=CurrentGenerations()),
    "nothing is new": lambda size: Side(size, LogEnds(0, 10, 0), 10),
    "all were trimmed": lambda size: Side(size, LogEnds(20, 30, 0), 10),
    "all went back": lambda size: Side(size, LogEnds(0, 5, 1), 10),
    "all have new leaders": lambda size: Side(size, LogEnds(0, 10, 1), 10),
    "no leader is known": lambda size: Side(size, LogEnds(0, 10, None), 10, leaders={}),
    "all were made again": lambda size: Side(size, LogEnds(0, 10, 0), 10, topic_id="other"),
    "none has a leader": lambda size: Side(
        size, LogEnds(0, 10, 0), 10, leaderless=frozenset(range(size))
    ),
    "all wait": lambda size: Side(size, LogEnds(20, 30, 0), 10, open=LOST[:size]),
    "all began by themselves": lambda size: Side(
        size,
        LogEnds(0, 10, 0),
        10,
        known=CurrentGenerations(
            {topic: TopicGeneration(0, "id") for topic, _ in keys(size)},
            {key: Branch(1, 5) for key in keys(size)},
        ),
    ),
}


@pytest.mark.parametrize("case", SIDES)
def test_a_plan_grows_as_the_partitions(case: str) -> None:
    def made(size: int) -> Callable[[], object]:
        side: Any = SIDES[case](size)
        planner = LandingPlanner("east", side, side)
        covered = dict.fromkeys(side.keys, 10)

        def turn() -> None:
            planned = planner.plan(covered)
            planner.differs(planned, covered)
            planner.succeeded(planned.plan.starts)

        return turn

    assert growth(made) < LINEAR


FLOWS = [("east->west", TopicSelection((".*",), (), Naming("default", "east"), "west"))]


@pytest.mark.parametrize("case", ["all were trimmed", "none has a leader", "nothing is new"])
def test_what_a_plan_tells_grows_as_the_partitions(case: str) -> None:
    def made(size: int) -> Callable[[], object]:
        side: Any = SIDES[case](size)
        planned = LandingPlanner("east", side, side).plan({})
        incidents = SimpleNamespace(
            note=lambda found, _: list(found),
            report=list,
            close=lambda over: [
                over(
                    SimpleNamespace(flow="f", kind="source_refused", topic=topic, partition=number)
                )
                for topic, number in side.keys
            ],
        )
        log: Any = SimpleNamespace(incidents=incidents)
        told = LandingIncidents("east", log)
        return lambda: (told.report_plan(planned, FLOWS), told.succeeded(["f"], planned))

    assert growth(made) < LINEAR


def excluded(size: int) -> Callable[[], object]:
    left_out = ExcludedPartitions()

    def turns() -> None:
        for at in range(3):
            left_out.add(dict.fromkeys(keys(size), "why"), at)
            left_out.excluded(at)
            left_out.over(0, at)
        left_out.forget(keys(size))

    return turns


def news(size: int, count: int) -> Ranges:
    return news_of(dict.fromkeys(keys(size), 0), dict.fromkeys(keys(size), count))


SLOW = Pace(10_000, {"t1": 10.0})
BATCHES: dict[str, Made] = {
    "all have news": lambda size: lambda: next_ranges(news(size, 50), 1_000),
    "none has": lambda size: lambda: next_ranges(news(size, 0), 1_000),
    "over a slow link": lambda size: lambda: next_ranges(news(size, 50), 1_000, pace=SLOW),
    "parts of tasks": lambda size: (
        lambda: shared_out(dict.fromkeys(keys(size), (0, 50_000)), size // 4, {"t1": 10.0})
    ),
    "what the checkpoint keeps": lambda size: (
        lambda: read_document(offsets_document(dict.fromkeys(keys(size), 5)))
    ),
    "left out for now": excluded,
}


@pytest.mark.parametrize("case", BATCHES)
def test_a_batch_grows_as_the_partitions(case: str) -> None:
    assert growth(BATCHES[case]) < SORTED


def test_the_newest_generations_of_topics_grow_as_their_branches() -> None:
    """`resolve` asks for each topic that was made again."""

    def made(size: int) -> Callable[[], object]:
        topics = [Name(f"t{n}") for n in range(size)]
        known = {topic: TopicGeneration(0, "id") for topic in topics}
        branches = {(topic, 0): Branch(2, 5) for topic in topics[::2]}

        def asked() -> None:
            current = CurrentGenerations(known, branches)
            assert [current.newest(topic) for topic in topics[:2]] == [2, 0]
            for topic in topics:
                current.newest(topic)

        return asked

    assert growth(made) < LINEAR


def test_a_file_of_small_partitions_takes_few_steps_for_each(tmp_path: Path) -> None:
    """A column that is made of each by itself costs as much for one record as for a thousand."""

    def made(size: int) -> Callable[[], object]:
        part = Part("east", 1, 1, {}, {(f"t{n}", n): 9 for n in range(size)}, "[]")
        read = {(f"t{n}", n): [rows(n, [1, 2])] for n in range(size)}
        file = StageFile(place_of(tmp_path), definition("records").rows, part, "task")
        sizes = Sizes(dict.fromkeys(read, 200))
        return lambda: file.write(read, sizes)

    made(5)()
    assert steps(made(240)) - steps(made(60)) < 100 * (240 - 60)
