"""`run --wait-for-config`, as the bundle's job `replicate` calls it: a process that begins before
its file is there."""

import signal
from pathlib import Path

import pytest

from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, write
from tests.support.replication import finish, start_run, write_topology
from tests.support.topologies import ends
from tests.support.waiting import until


def said(directory: Path) -> str:
    return (directory / "run.log").read_text(encoding="utf-8")


@pytest.mark.wide("test_a_signal_ends_the_wait_and_nothing_has_failed")
def test_it_goes_on_when_the_file_is_written(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(200))
    file = tmp_path / "mirrorlake.yml"
    run = start_run(file, "--wait-for-config", "--once")
    try:
        until(
            lambda: "waiting for the topology file" in said(tmp_path), "it says what it waits for"
        )
        assert str(file) in said(tmp_path) and run.poll() is None
        write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    finally:
        assert finish(run) == 0, said(tmp_path)[-3000:]
    assert ends(clusters.west, [f"east.{topic_name}"]) >= 200
    assert said(tmp_path).count("waiting for the topology file") == 1, "it says so once"


@pytest.mark.parametrize("once", [False, True])
def test_a_signal_ends_the_wait_and_nothing_has_failed(tmp_path: Path, once: bool) -> None:
    """A job's run that is cancelled before anybody wrote the file. One with an end has not come to
    it, and is not done."""
    run = start_run(tmp_path / "mirrorlake.yml", "--wait-for-config", *["--once"] * once)
    try:
        until(lambda: "waiting for the topology file" in said(tmp_path), "it waits")
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == once
    finally:
        finish(run)
    assert "Traceback" not in said(tmp_path)
