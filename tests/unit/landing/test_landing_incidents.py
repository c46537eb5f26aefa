"""What operators are told of topics that a source does not show any more, or does not let read."""

from dataclasses import replace
from pathlib import Path

import pytest

from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.landing.landing_incidents import LandingIncidents
from mirrorlake.landing.source_comparison import (
    CurrentGenerations,
    LandingPlan,
    Planned,
    SourceTopic,
    TopicGeneration,
)
from mirrorlake.naming.naming import Naming
from mirrorlake.naming.selection import TopicSelection
from tests.support.lake_rows import no_session, opened, write_file

FLOW = "east->west"
FLOWS = [(FLOW, TopicSelection((".*",), (), Naming("default", "east"), "west"))]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return opened(no_session, write_file(tmp_path))[0]


def planned(generation: int, there: bool = False, hidden: bool = False) -> Planned:
    """A plan around a topic, which is there, or may not be seen, or was deleted."""
    topic = TopicGeneration(generation, f"id{generation}")
    return Planned(
        plan=LandingPlan("east", {}),
        topics={"orders": SourceTopic(topic.topic_id, 1)} if there else {},
        log={},
        losses=(),
        given_up=(),
        refused={},
        unanswered=frozenset(),
        current_generations=CurrentGenerations({"orders": topic}),
        open=frozenset(),
        waiting=(frozenset(), frozenset()),
        covered={},
        denied={"orders": None} if hidden else {},
    )


def test_a_topic_that_was_deleted_once_is_told_of_when_it_is_not_shown_again(lake: Lake) -> None:
    """A cluster that hides a topic hides as well whether it is there: what was told of as deleted
    is none that lost its rights, unless it was made again since. Each process is a new one."""
    log = EventLog(lake)

    def told(plan: Planned) -> bool:
        return LandingIncidents("east", log).report_plan(plan, FLOWS) is not None

    def deletions() -> int:
        return sum(change.outcome == "gone" for change in log.history(FLOW, "topic"))

    for _ in range(2):
        assert not told(planned(0)) and deletions() == 1
    assert not told(planned(0, hidden=True))
    assert not told(planned(1, there=True))
    assert told(planned(1, hidden=True)), "it was made again, and its rights were taken away"
    for _ in range(2):
        assert not told(planned(1)) and deletions() == 2
    assert not told(planned(1, hidden=True))


def test_a_topic_that_may_not_be_read_is_one_incident(lake: Lake) -> None:
    """However many partitions it has; it stays open until it is read, whatever else comes through
    meanwhile. One partition that has no leader is told of by itself."""
    count, why = 100, "the cluster does not allow to read the topic"
    keys = [("orders", partition) for partition in range(count)]
    topic = SourceTopic("id0", count)
    plan = replace(planned(0), topics={"orders": topic, "audit": SourceTopic("id1", 2)})
    audit = {("audit", 0): 0}
    closed = replace(
        plan,
        plan=LandingPlan("east", audit),
        topics={**plan.topics, "orders": replace(topic, readable=False)},
        refused={**dict.fromkeys(keys, why), ("audit", 1): "the partition has no leader"},
    )
    half = replace(plan, plan=LandingPlan("east", {**audit, ("audit", 1): 0, ("orders", 0): 0}))

    def standing() -> list[tuple[str, int | None]]:
        rows = lake.now.table_rows("open_incidents")
        return sorted(((row["topic"], row["partition"]) for row in rows), key=str)

    for _ in range(2):  # the other one is a new process
        incidents = LandingIncidents("east", EventLog(lake))
        told = incidents.report_plan(closed, FLOWS)
        assert told is not None, "which makes a run with an end exit with 1"
        incidents.succeeded([FLOW], closed)
        assert standing() == [("audit", 1), ("orders", None)]
    (row,) = [row for row in lake.now.table_rows("open_incidents") if row["topic"] == "orders"]
    assert row["kind"] == "source_refused" and why in row["detail"]
    assert incidents.report_plan(half, FLOWS) is None
    incidents.succeeded([FLOW], half)
    assert standing() == []
