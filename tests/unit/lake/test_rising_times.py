"""Where a clock was ahead, of another host or of this one before it was set, what is noted now
counts all the same: it comes behind what was noted then."""

import time
from datetime import datetime, tzinfo
from pathlib import Path

import pytest
from deltalake import DeltaTable

from mirrorlake.errors import ReplicationError, TargetLost
from mirrorlake.groups.checkpoint_plan import EXCLUDED, GONE
from mirrorlake.groups.checkpoint_table import left_out_groups, note_left_out
from mirrorlake.lake import rising_times
from mirrorlake.lake.changes import Change
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.incidents import Incident, IncidentKey
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.states import States, states_as_of
from mirrorlake.lake.targets import LivingMirror, note_targets, noted_targets
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.lake.translate import translate_all
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.testing import MemoryLake
from tests.support.lake_rows import FLOW, ago, append, no_session, opened, record_row, write_file


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return opened(no_session, write_file(tmp_path))[0]


def was_ahead(lake: Lake, table: str, *columns: str) -> None:
    """What a table has was noted by a clock that was an hour ahead, by another process that goes on
    meanwhile; of `changes` by one that has ended."""
    if table == "changes":
        lake.changed_at = None
    later = {column: f"{column} + INTERVAL '1 hour'" for column in columns}
    DeltaTable(f"{lake.directory}/{table}").update(updates=later)


def test_what_was_changed_last_is_the_newest_change(lake: Lake) -> None:
    there, gone = Change("topic", "t", after="made"), Change("topic", "t", outcome="gone")
    for change in (there, gone, there):
        EventLog(lake).record(FLOW, [change])
        was_ahead(lake, "changes", "at")
    EventLog(lake).record(FLOW, [gone])
    assert EventLog(lake).history(FLOW, "topic") == (there, gone)


def test_what_was_decided_last_about_a_partition_holds(lake: Lake) -> None:
    """What a target lost behind the records that are to be produced again begins anew there."""
    incidents = EventLog(lake).incidents

    def note(kind: str, resolution: str) -> None:
        error = ReplicationError("planted", topic="t", partition=0, generation=0, target_offset=7)
        incidents.note([Incident(FLOW, kind, error)], resolution)

    note("map_behind", "produce-again")
    was_ahead(lake, "incidents", "at", "resolved_at")
    note("target_lost", "accept")
    assert not incidents.decided(FLOW, lambda _: LivingMirror(None, 0)).again


def test_an_incident_that_is_opened_is_the_newest_one(lake: Lake) -> None:
    incidents = EventLog(lake).incidents
    for topic in ("t", "u"):
        incidents.open(FLOW, "topic_refused", ReplicationError("planted", topic=topic))
        was_ahead(lake, "incidents", "at")
    incidents.open(FLOW, "topic_refused", ReplicationError("planted", topic="v"))
    rows = sorted(lake.ask_table("incidents"), key=lambda row: row["at"])
    assert [row["topic"] for row in rows] == ["t", "u", "v"]


def test_a_mirror_of_another_name_is_the_newest_one(lake: Lake) -> None:
    """Positions lead there."""
    for target in ("old", "new"):
        if target == "new":
            was_ahead(lake, "target_generations", "started_at")
        noted = NotedTarget(0, f"id of {target}", "stage", (0,))
        note_targets(lake, FLOW, {("t", target): noted})
    assert noted_targets(lake, FLOW)[1] == {"t": "new"}
    append(lake, "offset_map", [record_row(FLOW, ("t", 0, 0), 0, "new", 0)])
    (found,) = translate_all(lake.reader, FLOW, {("t", 0, 0)}).values()
    assert found.topic == "new"


def test_how_a_topic_is_now_is_what_was_noted_last(lake: Lake) -> None:
    States(lake).note("east", {"t": TopicState(1, 1)})
    was_ahead(lake, "states", "since")
    states = States(lake)
    for partitions in (2, 3):
        states.note("east", {"t": TopicState(partitions, 1)})
        assert states_as_of(lake.now, "east")["t"].partitions == partitions


def test_an_alias_is_the_cluster_that_it_was_last(lake: Lake) -> None:
    log = EventLog(lake)
    log.clusters({"east": "one", "west": "two"})
    was_ahead(lake, "clusters", "first_seen", "last_seen")
    log.clusters({"east": "three", "west": "one"})
    newest = {row["cluster_id"]: row["alias"] for row in lake.ask("known_clusters")}
    assert newest["one"] == "west"
    rows = [row for row in lake.ask_table("clusters") if row["alias"] == "east"]
    assert max(rows, key=lambda row: row["last_seen"])["cluster_id"] == "three"


def test_a_group_that_is_left_out_now_is_left_out(lake: Lake) -> None:
    note_left_out(lake, FLOW, [(GONE, {"g": ("t", 0)})])
    was_ahead(lake, "checkpoints", "checkpointed_at")
    note_left_out(lake, FLOW, [(EXCLUDED, {"g": ("t", 0)})])
    assert left_out_groups(lake.now, FLOW)[EXCLUDED] == {"g": ("t", 0)}


def test_a_position_of_before_a_loss_was_decided_about_is_behind_it(lake: Lake) -> None:
    """Of a time to come: the clock was ahead when the group was moved there."""
    place = {"flow": FLOW, "topic": "t", "partition": 0, "target_topic": "east.t"}
    moved = {"group_id": "g", "source_position": 9, "target_position": 9, "synced": True}
    row = place | moved | {"checkpointed_at": ago(0)}
    lake.append("checkpoints", rows_of("checkpoints", [row]))
    was_ahead(lake, "checkpoints", "checkpointed_at")
    incidents = EventLog(lake).incidents
    lost = TargetLost("planted", target_offset=7, topic="t", partition=0, generation=0)
    incidents.open(FLOW, lost.incident_kind, lost)
    incidents.settle_all([IncidentKey(FLOW, lost.incident_kind, "t", 0, 0)], "accept")
    (found,) = lake.ask_table("group_positions")
    assert not found["synced"] and "the target has lost records" in (found["reason"] or "")
    (told,) = lake.ask_table("incidents")
    assert told["resolved_at"] >= told["at"]


def test_the_lake_is_asked_once_when_a_change_was_noted_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It costs requests in a store. The clock of this process may be set back meanwhile. Incidents
    are asked for each time, since an operator answers them from another host."""
    lake = MemoryLake()
    log = EventLog(lake)
    for kind in ("a", "b", "c"):
        log.record(FLOW, [Change("topic", "t", outcome=kind)])
        log.incidents.note([Incident(FLOW, kind, ReplicationError("planted", topic="t"))], "skip")
        monkeypatch.setattr(rising_times, "datetime", _Earlier)
    assert (lake.asked["newest_change"], lake.asked["newest_incident"]) == (1, 3)
    for table in ("changes", "incidents"):
        times = [row["at"] for row in lake.appended[table]]
        assert len({*times}) == 3 and times == sorted(times)


class _Earlier(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "_Earlier":
        return cls.fromtimestamp(time.time() - 3600, tz)
