"""What an operator decided about a flow's partitions holds in the generations that it was about."""

import shutil
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import ReplicationError, TargetLost
from mirrorlake.lake.decisions import FOUND_NONE, Decided, Lost
from mirrorlake.lake.definitions import definition, rows_of
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.incidents import Incident, IncidentKey, Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.targets import LivingMirror, note_targets
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.offsets.ranges import OffsetRanges

FLOW = "east->west"
NOW = datetime.now(timezone.utc)
HERE, BEFORE = PartitionGeneration("orders", 0, 1), PartitionGeneration("orders", 0, 0)
RANGES = OffsetRanges([(5, 9)])
MIRROR, RENAMED = "east.orders", "copy.orders"


def _no_session() -> Any:
    raise AssertionError("nothing here needs Spark")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(_no_session, Location(path=str(tmp_path / "lake")), tmp_path)


def error(place: PartitionGeneration, **more: object) -> ReplicationError:
    return ReplicationError("planted", **place._asdict(), first_offset=5, last_offset=9, **more)  # type: ignore[arg-type]


def decided(lake: Lake, living: int | None, name: str | None = MIRROR) -> Decided:
    return Incidents(lake).decided(FLOW, lambda _: LivingMirror(name, living))


NOTHING = Decided()


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
        ("stage_trimmed", "read-again", {}),
        ("stage_trimmed", FOUND_NONE, {"found_none": {HERE: RANGES}}),
        ("stage_trimmed", "read-again from 7", {}),
    ],
)
def test_each_is_of_a_generation(
    lake: Lake, kind: str, choice: str, wanted: dict[str, Any]
) -> None:
    at_target = {} if kind == "stage_trimmed" else {"target_generation": 2}
    Incidents(lake).note([Incident(FLOW, kind, error(HERE, **at_target))], choice)
    assert decided(lake, 2) == decided(lake, None) == replace(NOTHING, **wanted)
    over = NOTHING if at_target else replace(NOTHING, **wanted)
    assert decided(lake, 3) == decided(lake, 0) == over, (
        "what is about a target topic is of that one alone"
    )


@pytest.mark.parametrize(
    ("kind", "choice"),
    [
        ("target_refused", "skip"),
        ("target_refused", "park"),
        ("target_refused", "stop"),
        ("target_lost", "accept"),
        ("position_lost", "continue"),
        ("map_unknown", "produce-again"),
    ],
)
def test_each_is_of_the_mirror_that_it_names(lake: Lake, kind: str, choice: str) -> None:
    """The generations of another one have the same numbers. Where no name was noted it is the
    first mirror's, whatever the clocks said."""
    where = {"target_generation": 0, "target_offset": 7}
    Incidents(lake).note([Incident(FLOW, kind, error(HERE, **where, target_topic=MIRROR))], choice)
    assert decided(lake, 0) == decided(lake, 0, None) != NOTHING
    assert decided(lake, 0, RENAMED) == NOTHING
    older = [Incident("north->west", kind, error(HERE, **where))]
    Incidents(lake).note(older, choice)
    for name in (MIRROR, RENAMED):
        noted = {("orders", name): NotedTarget(0, f"id of {name}")}
        note_targets(lake, "north->west", noted)
    of_name = partial(Incidents(lake).decided, "north->west")
    assert of_name(lambda _: LivingMirror(MIRROR, 0)) == decided(lake, 0)
    assert of_name(lambda _: LivingMirror(RENAMED, 0)) == NOTHING


def test_what_was_decided_about_the_stage_is_of_any_mirror(lake: Lake) -> None:
    note_targets(lake, FLOW, {("orders", MIRROR): NotedTarget(0, "id")})
    Incidents(lake).note([Incident(FLOW, "stage_trimmed", error(HERE))], "continue")
    wanted = replace(NOTHING, trimmed={HERE: RANGES})
    assert decided(lake, 0) == decided(lake, 0, RENAMED) == wanted


def test_what_waits_of_one_mirror_is_told_of_another_one_too(lake: Lake) -> None:
    incidents = Incidents(lake)
    for name in (MIRROR, RENAMED, MIRROR):
        incidents.open(FLOW, "target_refused", error(HERE, target_generation=0, target_topic=name))
    told = [row["target_topic"] for row in lake.ask_table("open_incidents")]
    assert sorted(told) == [RENAMED, MIRROR]


def test_a_difference_decides_nothing_and_no_partition_waits_for_it(lake: Lake) -> None:
    told = Incident(FLOW, "content_differs", error(HERE, target_generation=2))
    Incidents(lake).note([told], "acknowledge")
    Incidents(lake).report([told])
    assert Incidents(lake).refused(FLOW) == []
    assert decided(lake, 2) == NOTHING


def test_what_an_earlier_version_wrote_is_of_the_first_generation_and_of_any_target_topic(
    lake: Lake,
) -> None:
    old = ReplicationError("planted", topic="orders", partition=0, first_offset=5, last_offset=9)
    Incidents(lake).note([Incident(FLOW, "target_refused", old)], "skip")
    assert decided(lake, 0) == decided(lake, 7) == replace(NOTHING, skipped={BEFORE: RANGES})


def test_what_a_target_lost_holds_its_partition_as_long_as_it_is_the_one_that_there_is(
    lake: Lake,
) -> None:
    lost = TargetLost("planted", target_offset=50, **HERE._asdict(), target_generation=1)
    Incidents(lake).open(FLOW, "target_lost", lost)
    assert decided(lake, 1) == replace(NOTHING, lost={("orders", 0): Lost(1, 50)})
    assert decided(lake, 2) == NOTHING


@pytest.mark.parametrize("kind", ["map_behind", "map_unknown"])
def test_what_an_older_lake_does_not_know_is_produced_again_until_the_target_loses_it(
    lake: Lake, kind: str
) -> None:
    """Offsets of the target begin anew in front of the one that was noted."""
    incidents = Incidents(lake)
    unknown = error(HERE, target_generation=1, target_offset=70)
    incidents.note([Incident(FLOW, kind, unknown)], "produce-again")
    assert decided(lake, 1) == replace(NOTHING, again={HERE: 70})
    assert decided(lake, 2) == NOTHING
    lost = TargetLost("planted", target_offset=50, **HERE._asdict(), target_generation=1)
    incidents.note([Incident(FLOW, "target_lost", lost)], "produce-again")
    assert decided(lake, 1) == NOTHING


def test_one_of_another_generation_is_told_and_closed_by_itself(lake: Lake) -> None:
    incidents = Incidents(lake)
    for place in (BEFORE, HERE, HERE):
        incidents.open(FLOW, "target_refused", error(place, target_generation=0))
    assert sorted(item.place for item in incidents.refused(FLOW)) == [BEFORE, HERE]
    incidents.settle_all([IncidentKey(FLOW, "target_refused", *HERE)], "stop")
    assert [item.place for item in incidents.refused(FLOW)] == [BEFORE]
    incidents.settle_all([IncidentKey(FLOW, "target_refused", *BEFORE)], "skip")
    assert decided(lake, 0) == replace(NOTHING, stopped=frozenset({HERE}), skipped={BEFORE: RANGES})


def test_what_a_target_loses_is_told_beside_what_waits_of_the_topic_before(lake: Lake) -> None:
    """Else it would be produced again without a decision, and groups that stand behind it would
    count as synced."""
    incidents = Incidents(lake)
    for generation, offset in ((0, 90), (0, 80), (1, 50), (1, 40)):
        lost = {"target_offset": offset, "target_generation": generation}
        incidents.open(FLOW, "target_lost", TargetLost("planted", **HERE._asdict(), **lost))
    assert decided(lake, 0).lost == {HERE.topic_partition: Lost(0, 90)}
    assert decided(lake, 1).lost == {HERE.topic_partition: Lost(1, 50)}
    incidents.settle_all([IncidentKey(FLOW, "target_lost", *HERE)], "produce-again")
    assert lake.ask_table("open_incidents") == [] and decided(lake, 1) == NOTHING


def _as_an_earlier_version_made_it(lake: Lake, table: str) -> None:
    """The table, without the column of generations, and empty."""
    assert lake.directory is not None
    path = lake.directory / table
    fields = [
        pa.field(item.name, item.arrow_type, not item.required)
        for item in definition(table).columns
        if item.name != "generation"
    ]
    shutil.rmtree(path)
    DeltaTable.create(str(path), Schema.from_arrow(pa.schema(fields)))


def test_a_lake_of_an_earlier_version_is_asked_and_goes_on(lake: Lake, tmp_path: Path) -> None:
    for table in ("incidents", "positions", "checkpoints"):
        _as_an_earlier_version_made_it(lake, table)
    assert lake.directory is not None
    place = {"flow": FLOW, "topic": "orders", "partition": 0}
    refused = {"kind": "target_refused", "first_offset": 5, "last_offset": 9, "resolution": "skip"}
    write_deltalake(
        str(lake.directory / "incidents"),
        rows_of("incidents", [{**place, **refused, "at": NOW, "resolved_at": NOW}]).drop_columns(
            "generation"
        ),
        mode="append",
    )
    found = DuckLake(lake.directory)
    for view in ("open_incidents", "group_positions", "partition_status", "alerts"):
        assert found.table_rows(view) == [], view
    assert found.query_rows("covered_ends", prefix="east->") == []
    (row,) = found.query_rows("mirror_incidents", flow=FLOW)
    assert (row["generation"], row["target_generation"]) == (0, None)
    again = open_lake(_no_session, Location(path=str(lake.directory)), tmp_path)
    assert decided(again, 3) == replace(NOTHING, skipped={BEFORE: RANGES})
    Incidents(again).open(FLOW, "target_refused", error(HERE, target_generation=3))
    assert [item.place for item in Incidents(again).refused(FLOW)] == [HERE]
