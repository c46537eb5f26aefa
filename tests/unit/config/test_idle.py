"""How often a lake is written to while there is nothing new, by where it lies and what the file
says."""

import re
from pathlib import Path

import pytest

from mirrorlake.config.idle import FOLDER
from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.errors import TopologyError
from tests.support.lake_rows import FLOW, write_file

STORE = {"path": "s3://bucket/lake"}


def topology(tmp_path: Path, lake: dict[str, object], **objectives: object) -> Topology:
    return load_topology(write_file(tmp_path, lake=lake, objectives=objectives))


@pytest.mark.parametrize(
    ("lake", "waits"),
    [
        ({"path": "lake"}, 10.0),
        ({"path": "file:///tmp/lake"}, 10.0),
        ({"path": "file:///tmp/lake", "catalog": "main", "schema": "a"}, 10.0),
        ({"catalog": "main", "schema": "a"}, 20.0),
    ],
)
def test_a_folder_is_written_to_at_once_and_a_catalog_half_as_often(
    tmp_path: Path, lake: dict[str, object], waits: float
) -> None:
    made = topology(tmp_path, lake)
    assert (made.lake.pace == FOLDER) == (waits == 10.0)
    assert made.heartbeats_wait([FLOW]) == waits
    assert made.objectives_of(FLOW)["heartbeat_seconds"] == 60
    assert made.quiet_seconds(FLOW) == 60.0


def test_in_a_store_what_says_nothing_new_is_written_now_and_then(tmp_path: Path) -> None:
    made = topology(tmp_path, STORE)
    assert (made.lake.pace.samples, made.heartbeats_wait([FLOW])) == (120.0, 120.0)
    assert made.objectives_of(FLOW)["heartbeat_seconds"] == 180
    often = topology(tmp_path, {**STORE, "idle_seconds": 10})
    assert (often.lake.pace.samples, often.heartbeats_wait([FLOW])) == (10.0, 10.0)
    assert often.objectives_of(FLOW)["heartbeat_seconds"] == 60


@pytest.mark.parametrize(
    ("objectives", "late", "wait"),
    [
        ({"heartbeat_seconds": 60}, 60, 40.0),
        ({"flows": {FLOW: {"heartbeat_seconds": 30}}}, 30, 20.0),
        ({"stuck_seconds": 60}, 180, 20.0),
        ({"heartbeat_seconds": 3600}, 3600, 120.0),
    ],
)
def test_heartbeats_keep_the_objectives_that_the_file_says(
    tmp_path: Path, objectives: dict[str, object], late: int, wait: float
) -> None:
    """Whatever that costs."""
    made = topology(tmp_path, STORE, **objectives)
    assert made.objectives_of(FLOW)["heartbeat_seconds"] == late
    assert made.heartbeats_wait([FLOW]) == pytest.approx(wait)


@pytest.mark.parametrize(
    ("lake", "said"),
    [
        ({"path": "lake", "idle_seconds": 60}, "idle_seconds is about a path that is a URL"),
        ({**STORE, "idle_seconds": 9}, "lake.idle_seconds must be at least 10"),
        ({**STORE, "idle_seconds": 241}, "lake.idle_seconds must be at most 240"),
    ],
)
def test_what_it_cannot_be(tmp_path: Path, lake: dict[str, object], said: str) -> None:
    with pytest.raises(TopologyError, match=re.escape(said)):
        topology(tmp_path, lake)
