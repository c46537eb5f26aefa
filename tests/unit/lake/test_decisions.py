"""What an operator decided about a flow's partitions holds in the generations that it was about."""

from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.topology import Lake as Location
from mirrorlake.errors import ReplicationError, TargetLost
from mirrorlake.lake.incidents import Decided, Incident, IncidentKey, Incidents, Lost
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.offsets.ranges import OffsetRanges

FLOW = "east->west"
HERE, BEFORE = PartitionGeneration("orders", 0, 1), PartitionGeneration("orders", 0, 0)
RANGES = OffsetRanges([(5, 9)])


def _no_session() -> Any:
    raise AssertionError("nothing here needs Spark")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(_no_session, Location(path=str(tmp_path / "lake")), tmp_path)


def error(place: PartitionGeneration, **more: int) -> ReplicationError:
    return ReplicationError("planted", **place._asdict(), first_offset=5, last_offset=9, **more)  # type: ignore[arg-type]


def decided(lake: Lake, living: int | None, flow: str = FLOW) -> Decided:
    return Incidents(lake).decided(flow, lambda _: living)


NOTHING = Decided(frozenset(), {}, {}, {}, {}, {})


@pytest.mark.parametrize(
    ("kind", "choice", "wanted"),
    [
        ("target_refused", "skip", {"skipped": {HERE: RANGES}}),
        ("target_refused", "park", {"parked": {HERE: RANGES}}),
        ("target_refused", "stop", {"stopped": frozenset({HERE})}),
        ("target_lost", "accept", {"skipped": {HERE: RANGES}}),
        ("target_lost", "produce-again", {}),
        ("position_lost", "continue", {"foreign": {HERE: 5}}),
        ("stage_trimmed", "continue", {"trimmed": {HERE: RANGES}}),
        ("stage_trimmed", "read-again", {"trimmed": {HERE: RANGES}}),
        ("stage_trimmed", "read-again from 7", {}),
    ],
)
def test_each_is_of_a_generation(lake: Lake, kind: str, choice: str, wanted: dict[str, Any]) -> None:
    at_target = {} if kind == "stage_trimmed" else {"target_generation": 2}
    Incidents(lake).note([Incident(FLOW, kind, error(HERE, **at_target))], choice)
    assert decided(lake, 2) == decided(lake, None) == NOTHING._replace(**wanted)
    over = NOTHING if at_target else NOTHING._replace(**wanted)
    assert decided(lake, 3) == decided(lake, 0) == over, "what is about a target topic is of that one alone"


def test_what_an_earlier_version_wrote_is_of_the_first_generation_and_of_any_target_topic(lake: Lake) -> None:
    old = ReplicationError("planted", topic="orders", partition=0, first_offset=5, last_offset=9)
    Incidents(lake).note([Incident(FLOW, "target_refused", old)], "skip")
    assert decided(lake, 0) == decided(lake, 7) == NOTHING._replace(skipped={BEFORE: RANGES})


def test_what_a_target_lost_holds_its_partition_as_long_as_it_is_the_one_that_there_is(lake: Lake) -> None:
    lost = TargetLost("planted", target_offset=50, **HERE._asdict(), target_generation=1)
    Incidents(lake).tell(FLOW, "target_lost", lost)
    assert decided(lake, 1) == NOTHING._replace(lost={("orders", 0): Lost(1, 50)})
    assert decided(lake, 2) == NOTHING


def test_one_of_another_generation_is_told_and_closed_by_itself(lake: Lake) -> None:
    incidents = Incidents(lake)
    for place in (BEFORE, HERE, HERE):
        incidents.tell(FLOW, "target_refused", error(place, target_generation=0))
    assert sorted(item.place for item in incidents.refused(FLOW)) == [BEFORE, HERE]
    incidents.settle_all([IncidentKey(FLOW, "target_refused", *HERE)], "stop")
    assert [item.place for item in incidents.refused(FLOW)] == [BEFORE]
    incidents.settle_all([IncidentKey(FLOW, "target_refused", *BEFORE)], "skip")
    assert decided(lake, 0) == NOTHING._replace(stopped=frozenset({HERE}), skipped={BEFORE: RANGES})
