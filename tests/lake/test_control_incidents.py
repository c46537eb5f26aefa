"""Incidents of control tasks: told by the second failure in a row, closed by what is true, whoever
told of them."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.errors import ReplicationError
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.run.control_incidents import KNOWN_SECONDS, ControlIncidents
from tests.support.lake_rows import now_of
from tests.support.sample_lake import empty_lake

FLOW = "east->west"
WHY = ValueError("the target said no")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """An empty lake."""
    return empty_lake(spark, tmp_path)


def kinds(lake: Lake) -> set[tuple[str, str]]:
    """Flow and kind of what is open."""
    return {(row["flow"], row["kind"]) for row in now_of(lake).table_rows("open_incidents")}


def test_the_second_failure_is_told_and_a_success_closes_it(lake: Lake) -> None:
    news = ControlIncidents(FLOW, EventLog(lake))
    assert news.failed("group offsets", WHY) is None and not kinds(lake)
    problem = news.failed("group offsets", WHY)
    assert (
        isinstance(problem, ReplicationError)
        and "group offsets" in str(problem)
        and "said no" in str(problem)
    )
    assert kinds(lake) == {(FLOW, "control_group_offsets")}
    news.succeeded("configs")
    assert kinds(lake) == {(FLOW, "control_group_offsets")}
    news.succeeded("group offsets")
    assert not kinds(lake) and not news.is_failing("group offsets")


def test_another_process_closes_what_a_killed_one_had_told(lake: Lake) -> None:
    for flow in (FLOW, "west->east"):
        killed = ControlIncidents(flow, EventLog(lake))
        for task in ("configs", "configs", "acls", "acls"):
            killed.failed(task, WHY)
    EventLog(lake).incidents.open(FLOW, "flow_waits", WHY)
    news = ControlIncidents(FLOW, EventLog(lake))
    news.succeeded("configs")
    left = {("west->east", "control_configs"), ("west->east", "control_acls"), (FLOW, "flow_waits")}
    assert kinds(lake) == left | {(FLOW, "control_acls")}
    news.not_done(["configs", "topics"])  # the file does not ask for ACLs any more
    assert kinds(lake) == left


def test_what_a_process_told_beside_this_one_is_closed_within_a_minute(lake: Lake) -> None:
    now = 0.0
    news = ControlIncidents(FLOW, EventLog(lake), lambda: now)
    news.succeeded("configs")
    other = ControlIncidents(FLOW, EventLog(lake))
    other.failed("configs", WHY)
    other.failed("configs", WHY)
    now = KNOWN_SECONDS
    news.succeeded("configs")
    assert not kinds(lake)
