"""What thousands of partitions have to tell is told in one commit, and closed in one: nobody else
waits for it."""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from mirrorlake.config.lake import Lake as Location
from mirrorlake.control.target_generations import TargetGenerations
from mirrorlake.errors import TargetRefused
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.incidents import Incident, Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.targets import LivingMirror, close_unfounded, note_targets
from mirrorlake.landing.landing_incidents import LandingIncidents
from mirrorlake.landing.source_comparison import (
    CurrentGenerations,
    LandingPlan,
    Loss,
    Planned,
    SourceTopic,
    TopicGeneration,
)
from mirrorlake.naming.naming import Naming
from mirrorlake.naming.selection import TopicSelection
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.run.resolve import Wanted, resolve
from mirrorlake.run.snapshot import Snapshot
from mirrorlake.run.stopped_partitions import StoppedPartitions
from mirrorlake.testing import MemoryCluster

logger = logging.getLogger(__name__)

PARTITIONS = 2_000
KEYS = [("wide", number) for number in range(PARTITIONS)]
FLOWS = [
    (f"east->{name}", TopicSelection((".*",), (), Naming("default", "east"), name))
    for name in ("west", "north")
]
NAMES = [name for name, _ in FLOWS]
_NO_CONNECTIONS: Any = None  # nobody is asked
#: How long all of a step may take here, seconds: one by one they took 25 ms each, and 38 ms to be
#: closed.
SOON = 10.0


def _no_session() -> NoReturn:
    raise AssertionError("nothing here needs Spark")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(_no_session, Location(path=str(tmp_path / "lake")), tmp_path)


@pytest.fixture
def commits(lake: Lake) -> Callable[[Callable[[], object]], int]:
    """How many commits to `incidents` something makes; it takes less than SOON."""

    def counted(work: Callable[[], object]) -> int:
        before, began = lake.version_of("incidents"), time.monotonic()
        work()
        took, made = time.monotonic() - began, lake.version_of("incidents") - before
        logger.info("%d commits, %.2f s", made, took)
        assert took < SOON
        return made

    return counted


def _planned(
    refused: list[TopicAndPartition], losses: tuple[Loss, ...] = (), given_up: tuple[Loss, ...] = ()
) -> Planned:
    starts = dict.fromkeys(set(KEYS) - set(refused), 0)
    return Planned(
        plan=LandingPlan("east", starts),
        topics={"wide": SourceTopic("id", PARTITIONS)},
        log={},
        losses=losses,
        given_up=given_up,
        refused=dict.fromkeys(refused, "the partition has no leader"),
        unanswered=frozenset(),
        current_generations=CurrentGenerations(),
        open=frozenset(),
        waiting=(frozenset(), frozenset()),
        covered={},
    )


def test_what_landing_has_to_tell(
    lake: Lake, commits: Callable[[Callable[[], object]], int]
) -> None:
    """Without a leader: told once, however often it is planned, and closed as far as it is over."""
    event_log = EventLog(lake)
    news = LandingIncidents("east", event_log)
    assert commits(lambda: news.report_plan(_planned(KEYS), FLOWS)) == 1
    assert commits(lambda: news.report_plan(_planned(KEYS), FLOWS)) == 0
    assert event_log.incidents.open_counts() == dict.fromkeys(NAMES, PARTITIONS)
    assert commits(lambda: news.succeeded(NAMES, _planned(KEYS[:3]))) == 1
    assert {(row["flow"], row["partition"]) for row in lake.ask_table("open_incidents")} == {
        (flow, number) for flow in NAMES for number in range(3)
    }
    assert (
        len({row["resolved_at"] for row in lake.ask_table("incidents") if row["resolution"]}) == 1
    )


def test_a_topic_that_may_not_be_seen_any_more_is_told_until_it_may(lake: Lake) -> None:
    """It looks as if it were deleted: that was noted, and is no incident."""
    event_log = EventLog(lake)
    news, shown = LandingIncidents("east", event_log), _planned([])
    generations = CurrentGenerations({"wide": TopicGeneration(0, "id")})
    hidden = replace(
        shown, topics={}, denied={"wide": None}, plan=LandingPlan("east", {}),
        current_generations=generations,
    )  # fmt: skip
    assert news.report_plan(shown, FLOWS) is None
    assert "may not be described" in str(news.report_plan(hidden, FLOWS))
    news.succeeded(NAMES, hidden)
    assert event_log.incidents.open_counts() == dict.fromkeys(NAMES, 1)
    assert event_log.history(NAMES[0], "topic") == ()
    news.succeeded(NAMES, shown)
    assert event_log.incidents.open_counts() == {}
    assert news.report_plan(replace(hidden, denied={}), FLOWS) is None
    assert [change.outcome for change in event_log.history(NAMES[0], "topic")] == ["gone"]
    assert LandingIncidents("east", event_log).report_plan(hidden, FLOWS) is None, (
        "who deleted it took its ACLs away, too"
    )
    assert news.report_plan(hidden, FLOWS) is not None, "it was made again since, and seen"


def test_a_topic_that_is_not_described_is_told_with_the_reason_and_not_as_deleted(
    lake: Lake,
) -> None:
    event_log = EventLog(lake)
    news, shown = LandingIncidents("east", event_log), _planned([])
    odd = replace(
        shown, topics={}, denied={"wide": "Disk error"}, plan=LandingPlan("east", {}),
        current_generations=CurrentGenerations({"wide": TopicGeneration(0, "id")}),
    )  # fmt: skip
    news.report_plan(shown, FLOWS)
    told = str(news.report_plan(odd, FLOWS))
    assert "topic wide is not described by cluster east (Disk error)" in told
    assert "grant" not in told and event_log.history(NAMES[0], "topic") == ()
    news.succeeded(NAMES, odd)
    assert event_log.incidents.open_counts() == dict.fromkeys(NAMES, 1)
    news.succeeded(NAMES, shown)
    assert event_log.incidents.open_counts() == {}


def test_what_landing_lost(lake: Lake, commits: Callable[[Callable[[], object]], int]) -> None:
    gone = tuple(Loss("source_truncated", *key, 0, 9) for key in KEYS)
    planned = _planned(KEYS[:1], gone[: PARTITIONS // 2], gone[PARTITIONS // 2 :])
    assert (
        commits(lambda: LandingIncidents("east", EventLog(lake)).report_plan(planned, FLOWS)) <= 2
    )
    rows = lake.ask_table("incidents")
    assert len(rows) == 2 * (PARTITIONS + 1)
    assert sum(row["resolution"] == "continue" for row in rows) == PARTITIONS


def _refused(*keys: TopicAndPartition) -> list[TargetRefused]:
    return [
        TargetRefused("no right", topic=key[0], partition=key[1], first_offset=5, last_offset=9)
        for key in keys
    ]


def test_what_a_target_refuses(lake: Lake, commits: Callable[[Callable[[], object]], int]) -> None:
    """Told, gone on behind, parked, stopped by an operator and let go on."""
    asked: list[int] = []
    targets = SimpleNamespace(
        check=lambda: asked.append(1),
        closed=dict,
        remote_topic=str,
        mirror=lambda _topic: LivingMirror(None, 0),
    )
    stopped = StoppedPartitions(
        "east->west",
        lake,
        targets,
        incidents=Incidents(lake),
        begin_anew=lambda: None,
        limits=lambda _topics: {},
    )  # type: ignore[arg-type]
    assert commits(lambda: stopped.refused(_refused(*KEYS))) == 1
    assert len(asked) == 1, "the target is asked once what it has"
    floors = dict.fromkeys(KEYS[: PARTITIONS // 2], 10) | dict.fromkeys(KEYS[PARTITIONS // 2 :], 9)
    snapshot = Snapshot(
        covered={},
        caught_up=True,
        floors=floors,
        mapped={},
        blocked=frozenset(),
        left_out=frozenset(),
    )
    assert commits(lambda: stopped.check(snapshot)) == 1
    places = [PartitionGeneration(*key, 0) for key in KEYS]
    assert commits(lambda: stopped.parked(places[PARTITIONS // 2 : -9])) == 1
    assert {row["partition"] for row in lake.ask_table("open_incidents")} == {
        n for _, n in KEYS[-9:]
    }
    assert (
        commits(
            lambda: resolve(Deployment.opened(lake, _NO_CONNECTIONS), Wanted(topic="wide"), "stop")
        )
        == 1
    )
    assert Incidents(lake).decided("east->west", lambda _: LivingMirror(None, 0)).stopped == set(
        places[-9:]
    )


def test_a_check_beside_a_refusal_loses_sight_of_none(lake: Lake) -> None:
    """The control looks just before the incident is there; once its record was taken, it is
    over."""

    class Beside(Incidents):
        def report(self, incidents: Iterable[Incident]) -> None:
            stopped.check(None)
            super().report(incidents)

    targets = SimpleNamespace(
        check=lambda: None,
        closed=dict,
        remote_topic=str,
        mirror=lambda _topic: LivingMirror(None, 0),
    )
    stopped = StoppedPartitions(
        "east->west",
        lake,
        targets,
        incidents=Beside(lake),
        begin_anew=lambda: None,
        limits=lambda _topics: {},
    )  # type: ignore[arg-type]
    stopped._before = False
    stopped.refused(_refused(KEYS[0]))
    assert len(lake.ask_table("open_incidents")) == 1
    stopped.check(SimpleNamespace(is_behind=lambda _place, _offset: True, behind={}))  # type: ignore[arg-type]
    assert lake.ask_table("open_incidents") == [] and stopped.error is None


def test_decisions_are_read_as_fast_as_there_are_many(lake: Lake) -> None:
    """Thousands of ranges of one partition: a tuple that grew by one each took the square of
    that."""
    incidents = Incidents(lake)
    errors = [
        TargetRefused(
            "too large", topic="wide", partition=0, first_offset=number, last_offset=number
        )
        for number in range(20_000)
    ]
    incidents.note([Incident("east->west", "target_refused", error) for error in errors], "skip")
    began = time.monotonic()
    decided = incidents.decided("east->west", lambda _: LivingMirror(None, None))
    assert len(list(decided.skipped[PartitionGeneration("wide", 0, 0)])) == 20_000
    assert time.monotonic() - began < SOON


def test_target_topics_that_are_gone(
    lake: Lake, commits: Callable[[Callable[[], object]], int]
) -> None:
    """Told together, and closed together once they turn out to be the ones that they were."""
    topics = [f"t{number}" for number in range(PARTITIONS)]
    target = MemoryCluster("west")
    note_targets(
        lake, "east->west", {(topic, topic): NotedTarget(0, f"id of {topic}") for topic in topics}
    )
    known = TargetGenerations(lake, "east->west", target, Incidents(lake))  # type: ignore[arg-type]
    names = {topic: topic for topic in topics}
    for topic in topics:
        target.make(topic, 0)
    assert commits(lambda: known.comparison(names)) == 1
    assert known.waiting.keys() == set(topics)
    noted = [(topic, topic, 0) for topic in topics]
    assert commits(lambda: close_unfounded(lake, "east->west", noted)) == 1
    assert lake.ask_table("open_incidents") == []
