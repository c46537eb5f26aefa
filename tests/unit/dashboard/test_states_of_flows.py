"""The dashboard says of a flow what the view `alerts` says, as `mirrorlake status` does."""

from pathlib import Path

import pytest

from mirrorlake.dashboard.data import read_data
from mirrorlake.dashboard.model import load_dashboard
from mirrorlake.lake.definitions import rows_of
from tests.support.lake_rows import FLOW, ago, append, no_session, opened, sample, write_file


@pytest.mark.parametrize("seconds", [10, 600], ids=["begun now", "begun ten minutes ago"])
def test_a_flow_through_which_no_heartbeat_ever_came_is_not_healthy(
    tmp_path: Path, seconds: int
) -> None:
    """Its heartbeats have no age, which is no longer than is allowed."""
    lake, _ = opened(no_session, write_file(tmp_path))
    objectives = {"lag_seconds": 60, "latency_p99_ms": 60_000, "heartbeat_seconds": 60}
    objectives |= {"stuck_seconds": 300}
    row = {"flow": FLOW, "enabled": True, "heartbeats": True, "mode": "continuous", **objectives}
    lake.append("objectives", rows_of("objectives", [{**row, "since": ago(seconds)}]))
    append(lake, "positions", [sample(5, 100, 100)])
    found = read_data(lake.now, load_dashboard())["datasets"]["ds_flows"]
    names = [column["name"] for column in found["columns"]]
    states = [dict(zip(names, one, strict=True))["state"] for one in found["rows"]]
    alerts = [one["alert"] for one in lake.ask_table("alerts")]
    expected = (["heartbeat"], ["needs attention"]) if seconds == 600 else ([], ["healthy"])
    assert (alerts, states) == expected
