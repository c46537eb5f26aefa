"""Which logs of its source a running flow does not go by: those of open incidents, and those that
an operator has stopped, whichever process said so."""

from pathlib import Path
from typing import Any

import pytest

from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.incidents import Incident, Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.landing.generations import begin_generations
from mirrorlake.landing.source_comparison import TopicGeneration
from mirrorlake.run.resolve import Wanted, resolve
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, no_session, opened, write_file

KEY = ("orders", 0)


def went_back(flow: str, first: int, partition: int = 0) -> Incident:
    error = ReplicationError(
        "it went back", topic="orders", partition=partition, first_offset=first, last_offset=99
    )
    return Incident(flow, "source_rewound", error)


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    """As `resolve` has it, in another process."""
    lake, topology = opened(no_session, write_file(tmp_path))
    begin_generations(lake, "east", {"orders": TopicGeneration(0, "x")})
    clusters: Any = {alias: MemoryCluster(alias, {"orders": [50]}) for alias in ("east", "west")}
    return Deployment(lake, Connections(topology, clusters), EventLog(lake))


@pytest.fixture
def lake(deployment: Deployment) -> Lake:
    return deployment.lake


def since(incidents: Incidents) -> dict[tuple[str, int], int]:
    logs = incidents.other_logs(FLOW)
    assert logs.alias == "east"
    return dict(logs.since)


def test_a_log_that_went_back_is_known_at_once(lake: Lake) -> None:
    incidents = Incidents(lake)
    assert since(incidents) == {}
    incidents.report([went_back(FLOW, 40), went_back("west->east", 7, 1)])
    assert since(incidents) == since(Incidents(lake)) == {KEY: 40}
    incidents.report([went_back("east->north", 30)])
    assert since(incidents) == {KEY: 30}, "a log is the same one for all flows from there"


@pytest.mark.parametrize("choice", ["stop", "new-generation"])
def test_until_an_operator_lets_it_go_on(deployment: Deployment, choice: str) -> None:
    incidents = Incidents(deployment.lake)
    incidents.report([went_back(FLOW, 40)])
    assert since(incidents) == {KEY: 40}
    assert resolve(deployment, Wanted(kind="source_rewound"), choice).decided
    assert since(incidents) == {KEY: 40}, "nothing was read since"
    assert incidents.open_kinds(FLOW) == set()
    assert since(incidents) == ({KEY: 40} if choice == "stop" else {})


def test_a_topic_that_was_made_again_is_one_of_them(deployment: Deployment) -> None:
    incidents = Incidents(deployment.lake)
    error = ReplicationError("it was made again", topic="orders")
    incidents.report([Incident(FLOW, "topic_recreated", error)])
    assert incidents.other_logs(FLOW).topics == {"orders"}
    resolve(deployment, Wanted(kind="topic_recreated"), "stop")
    assert incidents.open_kinds(FLOW) == set()
    assert incidents.other_logs(FLOW).topics == {"orders"}
    assert incidents.other_logs("west->east").topics == frozenset()
