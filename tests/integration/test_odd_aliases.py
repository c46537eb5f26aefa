"""Aliases that are legal in MirrorMaker 2's files: none of them is refused where nothing is
ambiguous."""

from pathlib import Path

import pytest
import yaml

from tests.support.clusters import ClusterPair, own_topics
from tests.support.commands import mirrorlake
from tests.support.kafka import create_topic, numbered, read_topic, topics_of, write
from tests.support.waiting import until

SEPARATED = {"policy": "identity", "replication_policy_separator": "-"}


def write_file(
    directory: Path, clusters: dict[str, str], flows: dict[str, dict[str, object]]
) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / "mirrorlake.yml"
    document = {
        "clusters": {alias: {"bootstrap_servers": address} for alias, address in clusters.items()},
        "lake": {"path": "./lake"},
        "flows": flows,
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.mark.wide("unit/config/test_topology.py::test_an_alias_is_taken_where_nothing_is_ambiguous")
def test_a_targets_alias_may_hold_spaces_and_dots(
    clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(10))
    with own_topics(clusters):
        flows: dict[str, dict[str, object]] = {"east->west dc.1": {"topics": [topic_name]}}
        topology = write_file(tmp_path, {"east": clusters.east, "west dc.1": clusters.west}, flows)
        mirrorlake(topology, "run", "--once")
        assert len(read_topic(clusters.west, f"east.{topic_name}")[0]) == 10
        mirrorlake(topology, "verify")
        assert mirrorlake(topology, "status")["healthy"]


@pytest.mark.wide("unit/config/test_topology.py::test_an_alias_is_taken_where_nothing_is_ambiguous")
def test_of_flows_that_keep_names_a_sources_alias_may_hold_the_separator(
    clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    """Heartbeats, which take the alias all the same, are read back by it, and do not go round."""
    there, back = f"{topic_name}-there", f"{topic_name}-back"
    with own_topics(clusters):
        for address, topic in ((clusters.east, there), (clusters.west, back)):
            create_topic(address, topic)
            write(address, topic, numbered(10))
        # Both select what ends so: heartbeats that are not read back as the other's would go round.
        flows = {"us-east->us-west": {**SEPARATED, "topics": [there, "us-(east|west)-heartbeats"]}}
        flows["us-west->us-east"] = {**SEPARATED, "topics": [back, "us-(east|west)-heartbeats"]}
        topology = write_file(tmp_path, {"us-east": clusters.east, "us-west": clusters.west}, flows)
        for _ in range(3):
            mirrorlake(topology, "run", "--once")
        assert (
            len(read_topic(clusters.west, there)[0])
            == len(read_topic(clusters.east, back)[0])
            == 10
        )
        until(
            lambda: "us-east-heartbeats" in topics_of(clusters.west), "the heartbeats are mirrored"
        )
        names = topics_of(clusters.east) | topics_of(clusters.west)
        assert {
            name for name in names if name.startswith("us-") and name.endswith("heartbeats")
        } == {"us-east-heartbeats", "us-west-heartbeats"}
        assert "us-east-heartbeats" not in topics_of(clusters.east)
