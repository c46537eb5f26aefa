"""Which generation of a target topic is the newest one, its number says: not when it was noted."""

from pathlib import Path

from mirrorlake.control.target_generations import TargetGenerations
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.targets import note_targets, noted_targets
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, ago, no_session, opened, write_file

TARGET = "east.t"


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
