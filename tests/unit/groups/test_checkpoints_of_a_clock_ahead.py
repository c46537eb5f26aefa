"""A position that is noted now is the newest one, though a clock was ahead when the one before was
noted: a failover goes by it when the source is gone."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from mirrorlake.config.topology import load_topology
from mirrorlake.groups.checkpoint_table import append_checkpoints, newest_checkpoints
from mirrorlake.groups.newest_checkpoints import NewestCheckpoints
from tests.support.group_turns import Running, Turn, row
from tests.support.lake_rows import FLOW, no_session, opened, write_file

KEY = ("alice", "orders", 0)
AHEAD = datetime.now(timezone.utc) + timedelta(hours=1)


def test_a_process_that_begins_goes_on_behind_them(tmp_path: Path) -> None:
    file = write_file(tmp_path)
    lake, flow = opened(no_session, file)[0], load_topology(file).flow(FLOW)
    assert append_checkpoints(lake, FLOW, [row(KEY, 5_000)], newest=AHEAD) > AHEAD
    running: Any = Running()
    begun = NewestCheckpoints(flow, lake, running, lambda _topics: None)
    assert begun.known()[KEY].source_position == 5_000
    append_checkpoints(lake, FLOW, [row(KEY, 100)], newest=begun.noted_at)  # its owner set it back
    assert newest_checkpoints(lake.now, FLOW)[KEY][0].source_position == 100


def test_so_does_one_whose_clock_is_set_back_while_it_runs(tmp_path: Path) -> None:
    turn = Turn(tmp_path, [KEY])
    lake: Any = turn.groups.source._lake
    turn.groups.source._newest.noted_at = AHEAD
    for position in (12, 14):
        turn.all_stand_at(position).groups.source.checkpoint()
    times = [noted["checkpointed_at"] for noted in lake.appended["checkpoints"]]
    assert times == sorted(set(times)) and times[1] > AHEAD
