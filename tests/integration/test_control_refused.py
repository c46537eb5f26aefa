"""What a target refuses of configs is an incident until it has them: else a flow would be called
healthy whose mirrors are not as their sources."""

from pathlib import Path

import pytest

from tests.support.clusters import ClusterPair
from tests.support.control import set_configs
from tests.support.kafka import create_topic, numbered, write
from tests.support.replication import write_topology
from tests.support.scene import Scene

LEAST = "min.compaction.lag.ms"


@pytest.mark.wide(
    "integration/test_control_configs.py::test_a_refused_change_is_told_once_and_stops_no_other"
)
def test_a_config_that_the_target_refuses_is_an_incident_until_it_takes_it(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """The target's own smallest lag, which is excluded, is more than the source's largest one."""
    settings = {"topics": [topic_name], "config_properties_exclude": [LEAST.replace(".", r"\.")]}
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings)
    scene = Scene(clusters, topology, topic_name)
    create_topic(clusters.east, topic_name, max_compaction_lag_ms="1000")
    create_topic(clusters.west, f"east.{topic_name}", min_compaction_lag_ms="5000")
    write(clusters.east, topic_name, numbered(10))

    scene.run(code=1)
    code, status = scene.call("status")
    (incident,) = status["incidents"]
    assert (code, status["healthy"], incident["kind"]) == (1, False, "control_configs")
    assert "max.compaction.lag.ms" in incident["detail"] and status["topics"][0]["lag_records"] == 0

    set_configs(clusters.west, f"east.{topic_name}", {LEAST: None})
    scene.run()
    code, status = scene.call("status")
    assert (code, status["healthy"], status["incidents"]) == (0, True, [])
