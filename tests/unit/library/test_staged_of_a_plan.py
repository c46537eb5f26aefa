"""What a plan asks of a lake at a path."""

from pathlib import Path

import pytest

from mirrorlake.lake.duck import DuckLake
from mirrorlake.library.planning import _StagedFiles
from tests.support.calls import calls_of
from tests.support.lake_rows import FLOW, append, no_session, opened, sample, staged, write_file


def test_the_ends_of_a_cluster_are_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two questions of one plan are about them, of each flow that reads from the cluster."""
    lake = opened(no_session, write_file(tmp_path))[0]
    append(lake, "records", staged(range(7)))
    append(lake, "positions", [sample(5, 0, 9, staged_end=9)])
    asked = calls_of(DuckLake, "table_rows", lambda _, table: table, monkeypatch.setattr)
    plan = _StagedFiles(lake.reader)
    assert [plan.ends("east") for _ in range(2)] == [{("orders", 0): 9}] * 2
    assert plan.ends("west") == {} and FLOW.startswith("east->")
    assert asked == ["replication_lag"] * 2  # once for each cluster
