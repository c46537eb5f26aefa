"""What of an edit of the topology file makes another landing query."""

from pathlib import Path
from typing import Any, cast

import pytest

from mirrorlake.config.topology import ResolvedFlow, load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.landing.reading_flows import ReadingFlows
from mirrorlake.testing import MemoryLake
from tests.support.lake_rows import write_file

WEST, NORTH = "east->west", "east->north"


def read(
    directory: Path, east: dict[str, Any] | None = None, **flows: dict[str, Any]
) -> tuple[list[ResolvedFlow], Connections]:
    """A file with these flows (by target), and settings of the cluster that they read from."""
    named = {f"east->{target}": settings for target, settings in flows.items()}
    clusters = {alias: {"bootstrap_servers": f"{alias}:1"} for alias in ("east", "west", "north")}
    clusters["east"].update(east or {})
    topology = load_topology(write_file(directory, flows=named, clusters=clusters))
    return topology.sources()["east"], Connections(topology)


@pytest.fixture
def flows(tmp_path: Path) -> ReadingFlows:
    found = read(tmp_path, west={"topics": ["a"]})
    made = ReadingFlows("east", Deployment(MemoryLake(), found[1], cast(EventLog, None)))
    assert made.set(*found), "there is none before the first"
    return made


def test_the_same_again_is_no_difference(flows: ReadingFlows, tmp_path: Path) -> None:
    assert not flows.set(*read(tmp_path, west={"topics": ["a"]}))
    assert flows.names() == [WEST]


@pytest.mark.parametrize(
    ("east", "west", "differs"),
    [
        ({}, {"topics": ["a"], "replication_factor": 1}, False),
        ({}, {"topics": ["a", "b"]}, True),
        ({"consumer": {"fetch.min.bytes": 2}}, {"topics": ["a"]}, True),
        ({"landing": {"small_batch_records": 5}}, {"topics": ["a"]}, True),
    ],
)
def test_what_is_read_and_how(
    flows: ReadingFlows, tmp_path: Path, east: dict[str, Any], west: dict[str, Any], differs: bool
) -> None:
    found = read(tmp_path, east, west=west)
    assert flows.set(*found) is differs
    assert flows.connections is found[1], "also where it makes no difference to the query"


def test_a_flow_more(flows: ReadingFlows, tmp_path: Path) -> None:
    both = read(
        tmp_path,
        west={"topics": ["a"], "sync_topic_configs_enabled": False},
        north={"topics": ["b"], "sync_topic_configs_enabled": True},
    )
    assert flows.set(*both)
    assert flows.names() == [NORTH, WEST] and flows.keep_configs
    assert [selection.selects("b") for selection in flows.selections()] == [True, False]
