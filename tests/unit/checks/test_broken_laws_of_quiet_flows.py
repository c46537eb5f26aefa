"""What `status` looks at of a flow, also of one that no process has run for long."""

from pathlib import Path

import pytest

from mirrorlake.checks.broken_laws import broken_laws
from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    commit,
    no_session,
    opened,
    run_row,
    sample,
    staged,
    write_file,
)

DAY = 86_400


@pytest.mark.parametrize("days", [0, 31], ids=["sampled of late", "not for 31 days"])
def test_what_its_target_lost_is_known(tmp_path: Path, days: int) -> None:
    """A fail-back begins with a flow that rested: what its target lost meanwhile is gone."""
    file = write_file(tmp_path)
    lake, _ = opened(no_session, file)
    commit(lake, "records", staged(range(50), 40 * DAY))
    append(lake, "offset_map", [run_row(0, 49, 40 * DAY), run_row(0, 9, 40 * DAY, topic="other-x")])
    append(lake, "positions", [sample(days * DAY + 1, 50, 50)])
    topology = load_topology(file)
    west = MemoryCluster("west", {"east.orders": [20]})
    connections = Connections(topology, {"east": MemoryCluster("east"), "west": west})
    alerts, unchecked = broken_laws(lake.now, connections, [topology.flow("east->west")])
    assert unchecked == []
    assert [(row["alert"], row["topic"], row["value"]) for row in alerts] == [
        ("target_behind", "orders", 30.0)
    ]


@pytest.mark.parametrize("end", [50, 20, None])
def test_what_was_not_sampled_of_late_beside_others_is_looked_at_too(
    tmp_path: Path, end: int | None
) -> None:
    """Its leader at the source is away. Where its mirror is not there, both may be gone on
    purpose."""
    file = write_file(tmp_path)
    lake, _ = opened(no_session, file)
    away = {"topic": "payments", "target_topic": "east.payments"}
    for topic in ("orders", "payments"):
        commit(lake, "records", staged(range(50), 40 * DAY, topic=topic))
    append(lake, "offset_map", [run_row(0, 49, 40 * DAY), run_row(0, 49, 40 * DAY, **away)])
    append(lake, "positions", [sample(1, 50, 50), sample(2 * DAY, 50, 50, **away)])
    topology = load_topology(file)
    ends = {"east.orders": [50]} | ({} if end is None else {"east.payments": [end]})
    connections = Connections(topology, {"west": MemoryCluster("west", ends)})
    alerts, unchecked = broken_laws(lake.now, connections, [topology.flow(FLOW)])
    found = [(row["alert"], row["topic"], row["value"]) for row in alerts]
    assert found == ([("target_behind", "payments", 30.0)] if end == 20 else [])
    assert [("such as payments-0" in sentence) for sentence in unchecked] == [True] * (end is None)


@pytest.mark.parametrize("provenance", ["headers", "strip"])
def test_what_nothing_but_headers_would_show_is_named(tmp_path: Path, provenance: str) -> None:
    """Records that have been on the target have no row in the map, so a hole there may be right."""
    file = write_file(tmp_path, flows={"east->west": {"provenance": provenance}})
    lake, _ = opened(no_session, file)
    topology = load_topology(file)
    west = MemoryCluster("west", {"east.orders": [100]})
    connections = Connections(topology, {"east": MemoryCluster("east"), "west": west})

    def looked_at() -> tuple[list[dict[str, object]], list[str]]:
        return broken_laws(lake.now, connections, [topology.flow("east->west")])

    assert looked_at() == ([], []), "it has mapped nothing yet"
    commit(lake, "records", staged(range(60), 40 * DAY))
    append(lake, "offset_map", [run_row(0, 9, 40 * DAY), run_row(20, 59, 40 * DAY)])
    append(lake, "positions", [sample(1, 60, 60)])
    alerts, (sentence,) = looked_at()
    assert alerts == [] and "flow east->west" in sentence and "divergence" in sentence


def test_what_another_mirror_got_hides_no_hole(tmp_path: Path) -> None:
    """Nor does what was decided about it: a topic was mirrored under another name before, and its
    generations have the same numbers."""
    file = write_file(tmp_path)
    lake, _ = opened(no_session, file)
    for offsets in (range(20), range(20, 40), range(40, 60)):
        commit(lake, "records", staged(offsets, 40 * DAY))
    before = {"target_topic": "old.orders", "target_generation": 0}
    append(lake, "offset_map", [run_row(0, 49, 40 * DAY, **before)])
    topology = load_topology(file)
    west = MemoryCluster("west", {"east.orders": [100], "old.orders": [100]})
    connections = Connections(topology, {"east": MemoryCluster("east"), "west": west})

    def holes() -> list[tuple[float, str]]:
        alerts, _ = broken_laws(lake.now, connections, [topology.flow("east->west")])
        return [(row["value"], row["detail"]) for row in alerts if row["alert"] == "map_gap"]

    assert holes() == [], "the new one has nothing yet"
    append(lake, "offset_map", [run_row(0, 9, 40 * DAY), run_row(20, 49, 40 * DAY)])
    append(lake, "positions", [sample(1, 50, 60)])
    ((missing, detail),) = holes()
    assert missing == 10 and "between offsets 0 and 39" in detail
    decided = {"flow": FLOW, "topic": "orders", "partition": 0, "kind": "target_refused"}
    decided |= {"at": ago(9), "resolved_at": ago(1), "first_offset": 10, "last_offset": 19}
    for choice in ("skip", "stop"):
        append(lake, "incidents", [decided | before | {"resolution": choice}])
    assert len(holes()) == 1
    mine = {"target_topic": "east.orders", "target_generation": 0, "resolution": "skip"}
    append(lake, "incidents", [decided | mine])
    assert holes() == []


@pytest.mark.parametrize("lacking", [0, 10])
def test_what_went_to_the_topic_of_an_earlier_policy_is_no_hole(
    tmp_path: Path, lacking: int
) -> None:
    """The flow goes on in the topic of now behind it; what the first one never got is a hole. That
    one may be deleted."""
    file = write_file(tmp_path)
    lake, _ = opened(no_session, file)
    commit(lake, "records", staged(range(60), 40 * DAY))
    before = {"target_topic": "old.orders", "target_generation": 0}
    rows = [run_row(0, 9, 40 * DAY, **before), run_row(10 + lacking, 49, 40 * DAY, **before)]
    append(lake, "offset_map", [*rows, run_row(50, 59, 40 * DAY)])
    append(lake, "positions", [sample(1, 60, 60)])
    topology = load_topology(file)
    west = MemoryCluster("west", {"east.orders": [100]})
    connections = Connections(topology, {"east": MemoryCluster("east"), "west": west})
    alerts, _ = broken_laws(lake.now, connections, [topology.flow("east->west")])
    found = [(row["alert"], row["value"]) for row in alerts]
    assert found == ([("map_gap", float(lacking))] if lacking else [])
