"""A run with an end that is stopped before it has not done what it was asked for."""

import threading
from pathlib import Path

import pytest

from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.run.options import RunOptions
from mirrorlake.run.replicator import Replicator
from tests.support.lake_rows import FLOW, no_session, opened, write_file


def replicator(directory: Path, *, once: bool, ended: bool) -> Replicator:
    """One of a flow that came to its end, or not, and then is stopped."""
    lake, topology = opened(no_session, write_file(directory))
    stop = threading.Event()
    stop.set()
    deployment = Deployment(lake, Connections(topology), EventLog(lake))
    made = Replicator(deployment, [topology.flow(FLOW)], RunOptions(once=once), stop=stop)
    made._all_ended = lambda: ended  # type: ignore[method-assign]
    made._begin = made._end = lambda: None  # type: ignore[method-assign]
    return made


def test_it_says_so(tmp_path: Path) -> None:
    """Whoever runs it as a job would take it for done."""
    with pytest.raises(ReplicationError, match="stopped before it came to the ends") as raised:
        replicator(tmp_path, once=True, ended=False).run()
    assert raised.value.exit_code == 1


@pytest.mark.parametrize(("once", "ended"), [(True, True), (False, False)])
def test_one_that_came_to_its_end_or_has_none_ends_in_order(
    tmp_path: Path, once: bool, ended: bool
) -> None:
    replicator(tmp_path, once=once, ended=ended).run()


@pytest.mark.parametrize("once", [True, False])
def test_what_has_an_end_writes_checkpoints_of_logs_itself(tmp_path: Path, once: bool) -> None:
    """It may be over before the thread that keeps tables small has come to them."""
    made = replicator(tmp_path, once=once, ended=True)
    assert isinstance(made.lake, PathLake) and made.lake.tables.kept_up is not once
