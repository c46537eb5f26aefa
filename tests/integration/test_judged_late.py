"""A cluster that is away when a run begins, and turns out to be one that is known by another
name."""

import signal
from pathlib import Path

import pytest
import yaml

from mirrorlake.devtools.local.ports import free_ports
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake
from tests.support.kafka import create_topic, numbered, write
from tests.support.replication import finish, start_run, write_topology
from tests.support.slow_link import Link
from tests.support.topologies import ends
from tests.support.waiting import until


@pytest.mark.slow
def test_a_flow_that_no_rule_could_look_at_ends_and_the_other_goes_on(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """Each record would have come twice into one topic, from then until the next start."""
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(200))
    north = Link(free_ports(1)[0])
    file = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    document["clusters"]["north"] = {"bootstrap_servers": north.address}
    document["flows"]["east->north"] = document["flows"]["east->west"]
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    run, log = start_run(file), tmp_path / "run.log"
    try:
        mirror = [f"east.{topic_name}"]
        until(lambda: ends(clusters.west, mirror) >= 200, "the other flow runs", 120)
        north.behind = int(clusters.west.rpartition(":")[2])
        until(lambda: "flow east->north has ended" in log.read_text("utf-8"), "it is judged", 120)
        incidents = mirrorlake(file, "status", code=1)["incidents"]
        assert [(one["flow"], one["kind"]) for one in incidents] == [
            ("east->north", "flow_stopped")
        ]
        write(clusters.east, topic_name, numbered(300, start=200))
        until(lambda: ends(clusters.west, mirror) >= 500, "the other flow goes on", 60)
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 1, "and the run says so"
    finally:
        finish(run)
        north.close()
