"""What `status` looks at of a flow that no process has run for long."""

from pathlib import Path

import pytest

from mirrorlake.checks.broken_laws import broken_laws
from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import (
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
