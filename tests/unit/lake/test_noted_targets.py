"""Which generation of a target topic is the newest one, its number says: not when it was noted."""

from pathlib import Path

import pytest

from mirrorlake.control import target_generations
from mirrorlake.control.target_generations import TargetGenerations
from mirrorlake.errors import ReplicationError
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.incidents import IncidentKey, Incidents
from mirrorlake.lake.targets import closed_topics, living_targets, note_targets, noted_targets
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, ago, no_session, opened, write_file

OLD, TARGET = "old.t", "east.t"


def test_a_topic_that_is_made_again_waits_though_a_clock_was_ahead_when_it_was_noted_first(
    tmp_path: Path,
) -> None:
    """An operator has decided about its first end, and not about the second one: what the map has
    of the topic before is not in the one that is there."""
    lake, _ = opened(no_session, write_file(tmp_path))
    target = MemoryCluster("west")
    first = {"flow": FLOW, "topic": "t", "target_topic": TARGET, "target_generation": 0}
    first |= {"topic_id": target.make(TARGET, 9), "begins": "stage", "began": [0]}
    lake.append(
        "target_generations", rows_of("target_generations", [first | {"started_at": ago(-3_600)}])
    )
    decided = {"flow": FLOW, "kind": "target_recreated", "topic": "t", "target_generation": 0}
    decided |= {"at": ago(60), "resolved_at": ago(50), "resolution": "again"}
    lake.append("incidents", rows_of("incidents", [decided]))
    target.delete(TARGET)
    again = NotedTarget(1, target.make(TARGET, 9), "stage", (0,))
    note_targets(lake, FLOW, {("t", TARGET): again})
    target.delete(TARGET)
    target.make(TARGET, 0)
    comparison = TargetGenerations(lake, FLOW, target, Incidents(lake)).comparison({"t": TARGET})
    assert (comparison.waiting, dict(comparison.begin)) == (frozenset({"t"}), {})
    (noted,) = noted_targets(lake, FLOW)[0].values()
    assert [one.number for one in noted] == [0, 1]


def test_what_was_decided_of_a_mirror_holds_for_none_of_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator has stopped one that was deleted, and lets the flow write to another one, whose
    generations have the same numbers."""
    monkeypatch.setattr(target_generations, "GONE_SECONDS", 0.01)
    lake, _ = opened(no_session, write_file(tmp_path))
    target = MemoryCluster("west")

    def process(name: str) -> TargetGenerations:
        """One that begins, and writes to the topic if it may."""
        process = TargetGenerations(lake, FLOW, target, Incidents(lake))
        process.begin(process.comparison({"t": name}), {"t": name})
        return process

    target.make(OLD, 0)
    assert OLD in process(OLD).living
    target.delete(OLD)
    assert "t" in process(OLD).waiting
    Incidents(lake).settle_all([IncidentKey(FLOW, "target_recreated", "t")], "stop")
    assert process(OLD).stopped == {"t"}
    target.make(TARGET, 0)
    for _ in ("it is noted", "it is known"):
        there = process(TARGET)
        assert TARGET in there.living and not there.stopped
    living = living_targets(lake.now, FLOW)
    assert (living["t"].target_topic, living["t"].lives) == (TARGET, True)
    assert closed_topics(lake.now, FLOW, living) == set()
    assert process(OLD).stopped == {"t"}, "that is what was decided of it"


def test_what_turns_out_to_be_unfounded_is_closed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By this process, and by another one that finds it open."""
    monkeypatch.setattr(target_generations, "GONE_SECONDS", 0.01)
    lake, _ = opened(no_session, write_file(tmp_path))
    target, changes = MemoryCluster("west"), list[str]()
    target.make(TARGET, 0)
    known = TargetGenerations(lake, FLOW, target, Incidents(lake))
    known.begin(known.comparison({"t": TARGET}), {"t": TARGET})
    change = lake.change
    monkeypatch.setattr(
        lake, "change", lambda name, *args, **kw: (changes.append(name), change(name, *args, **kw))
    )
    for topic, name in (("t", TARGET), ("t", OLD)):
        gone = ReplicationError("gone", topic=topic, target_topic=name, target_generation=0)
        Incidents(lake).open(FLOW, "target_recreated", gone)
    for process in (TargetGenerations(lake, FLOW, target, Incidents(lake)), known):
        for _ in range(3):
            process.comparison({"t": TARGET})
            assert TARGET in process.living
        assert lake.ask_table("open_incidents") == []
    assert changes == ["close_unfounded_targets"]
