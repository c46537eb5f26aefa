"""A flow whose samples go on coming is run by somebody, whatever the locks of this host say."""

import threading
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.failover.drain import _is_free
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.run import other_process
from mirrorlake.run.other_process import run_by_other_process
from tests.support.lake_rows import FLOW, ago, append, opened, sample, write_file


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """An empty lake."""
    return opened(spark, write_file(tmp_path))[0]


def test_a_flow_whose_samples_go_on_coming_is_not_free(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_process, "LOOK_SECONDS", 0.1)
    append(
        lake,
        "objectives",
        [{"flow": FLOW, "mode": "continuous", "enabled": True, "noted_at": ago(60)}],
    )
    append(lake, "positions", [sample(8, 10, 10)])
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(1.0):
            append(
                lake, "positions", [{**sample(0, 10, 10), "sampled_at": datetime.now(timezone.utc)}]
            )

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert run_by_other_process(lake, ["a->b", FLOW]) == FLOW
    finally:
        ended.set()
        thread.join()


@pytest.mark.wide("test_a_flow_whose_samples_go_on_coming_is_not_free")
def test_a_flow_that_was_killed_is_free_when_its_samples_have_ceased(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirrorlake.run.other_process.QUIET_SECONDS", 3.0)
    monkeypatch.setattr("mirrorlake.run.other_process.QUIET_INTERVALS", 0.3)  # of ten seconds each
    append(
        lake,
        "objectives",
        [{"flow": FLOW, "mode": "continuous", "enabled": True, "noted_at": ago(60)}],
    )
    append(lake, "positions", [sample(1, 10, 10)])
    assert run_by_other_process(lake, [FLOW]) is None
    topology = opened(lake.spark, write_file(lake.directory.parent))[1]
    deployment = Deployment.opened(lake, Connections(topology))
    assert _is_free(deployment, topology.flow(FLOW)) == (True, None)
