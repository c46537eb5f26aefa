"""The target has lost records that it had acknowledged: they come again at other offsets, if at
all. A group that was moved to where a position behind them led before would skip some."""

from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.groups.checkpoint_plan import BEHIND_LOST, GONE
from mirrorlake.groups.checkpoint_table import append_checkpoints, newest_checkpoints
from mirrorlake.groups.newest_checkpoints import NewestCheckpoints
from mirrorlake.lake.lake import Lake
from tests.support.group_turns import Running, row
from tests.support.lake_rows import FLOW, ago, append, no_session, opened, write_file

BEHIND, IN_FRONT = ("alice", "orders", 0), ("bob", "orders", 0)
#: From this offset on the target has lost what it had.
LOST = 8


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """It has a position on either side of what is lost, noted a moment ago."""
    lake = opened(no_session, write_file(tmp_path))[0]
    rows = [row(BEHIND, LOST + 2, synced=True), row(IN_FRONT, LOST, synced=True)]
    append_checkpoints(lake, FLOW, rows, newest=None)
    return lake


def lose(lake: Lake, decided_ago: int | None, **others: object) -> None:
    """An operator has decided about it so many seconds ago; of less than 0 when that is to come."""
    decided = None if decided_ago is None else ago(decided_ago)
    resolution = None if decided is None else "produce-again"
    incident: dict[str, Any] = {"flow": FLOW, "at": ago(60), "kind": "target_lost"}
    incident |= {"topic": "orders", "partition": 0, "generation": 0, "target_generation": 0}
    incident |= {"target_offset": LOST, "resolved_at": decided, "resolution": resolution}
    append(lake, "incidents", [incident | others])


def noted(lake: Lake) -> dict[str, tuple[bool, str | None]]:
    newest = newest_checkpoints(lake.now, FLOW)
    return {key[0]: (one.synced, one.reason) for key, (one, _) in newest.items()}


AS_IT_WAS = {"alice": (True, None), "bob": (True, None)}


@pytest.mark.parametrize("decided_ago", [None, -60], ids=["waits", "decided since"])
def test_a_position_behind_them_means_nothing(lake: Lake, decided_ago: int | None) -> None:
    assert noted(lake) == AS_IT_WAS
    lose(lake, decided_ago)
    lose(lake, decided_ago)  # of another generation of the source topic, too
    assert noted(lake) == {**AS_IT_WAS, "alice": (False, BEHIND_LOST)}


def test_who_has_left_stays_away(lake: Lake) -> None:
    gone = row(("carol", "orders", 0), LOST + 5, reason=GONE)
    append_checkpoints(lake, FLOW, [gone], newest=None)
    lose(lake, None)
    assert noted(lake)["carol"] == (False, GONE)


@pytest.mark.parametrize(
    ("decided_ago", "others"),
    [
        (30, {}),
        (None, {"partition": 1}),
        (None, {"target_generation": 1}),
        (None, {"flow": "east->north"}),
        (None, {"kind": "target_refused"}),
    ],
)
def test_others_stay_as_they_are(
    lake: Lake, decided_ago: int | None, others: dict[str, object]
) -> None:
    """One that was noted since an operator decided was translated by what the map has by now."""
    lose(lake, decided_ago, **others)
    assert noted(lake) == AS_IT_WAS


def test_a_flow_that_runs_translates_it_anew(lake: Lake, tmp_path: Path) -> None:
    running: Any = Running()
    flow = load_topology(write_file(tmp_path)).flow(FLOW)
    forgotten: list[str] = []
    groups = NewestCheckpoints(flow, lake, running, forgotten.extend)
    assert groups.known().keys() == {BEHIND, IN_FRONT} and not forgotten
    lose(lake, None)
    running.lost = 1
    assert groups.known().keys() == {IN_FRONT} == groups.unpublished.keys()
    assert forgotten == ["orders"]


def test_nor_does_what_was_translated_while_they_were_lost_count(
    lake: Lake, tmp_path: Path
) -> None:
    running: Any = Running()
    flow = load_topology(write_file(tmp_path)).flow(FLOW)
    groups = NewestCheckpoints(flow, lake, running, lambda _topics: None)
    assert groups.known().keys() == {BEHIND, IN_FRONT}
    lose(lake, None)
    running.lost = 1  # behind the translation, and before it is written down
    groups.write([row(BEHIND, LOST + 4), row(IN_FRONT, LOST - 1)], None)
    assert {key: one.source_position for key, one in groups.known().items()} == {IN_FRONT: LOST - 1}
