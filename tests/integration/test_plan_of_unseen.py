"""`plan` says what a flow that was away, or leaves groups out, does not see, and which mirrors its
target would refuse for their names."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.errors import ReplicationError
from mirrorlake.lake.incidents import IncidentKey, Incidents
from mirrorlake.run import unseen
from tests.support.clusters import ClusterPair
from tests.support.control import set_configs
from tests.support.kafka import create_topic, delete_topic, numbered, write
from tests.support.replication import replicate_once, write_topology
from tests.support.waiting import until


def planned(topology: Path) -> dict[str, Any]:
    """The document of a plan."""
    ended = CliRunner().invoke(app, ["-c", str(topology), "plan", "--json"])
    assert ended.exit_code == 0, ended.output
    return dict(json.loads(ended.stdout))


def notes(topology: Path) -> dict[str, str]:
    """The sentences of a plan that are about what is not seen, by rule."""
    problems = planned(topology)["problems"]
    rules = ("missed-deletions", "left-out-groups", "colliding-names")
    return {each["rule"]: each["sentence"] for each in problems if each["rule"] in rules}


def test_a_flow_that_was_away(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short = {"cleanup_policy": "compact", "delete_retention_ms": "1"}
    create_topic(clusters.east, topic_name, **short)
    create_topic(clusters.east, f"{topic_name}-kept", cleanup_policy="compact")
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [f"{topic_name}.*"]}
    )
    write(clusters.east, topic_name, numbered(3))
    assert notes(topology) == {}, "a flow that never ran has missed nothing"
    replicate_once(spark, topology)
    monkeypatch.setattr(unseen, "RUNS_MS", 0)
    assert notes(topology) == {}, "it has read all that is there"
    write(clusters.east, topic_name, numbered(1))
    write(clusters.east, f"{topic_name}-kept", numbered(1))
    sentence = notes(topology)["missed-deletions"]
    assert sentence.endswith(f"in topic {topic_name}"), sentence


def test_groups_that_its_settings_leave_out(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(3))
    for group in (f"connect-{topic_name}", f"billing-{topic_name}"):
        reader = Consumer({"bootstrap.servers": clusters.east, "group.id": group})
        reader.commit(offsets=[TopicPartition(topic_name, 0, 2)], asynchronous=False)
        reader.close()
    flow = {"topics": [topic_name], "emit_checkpoints_enabled": True}
    topology = write_topology(tmp_path, clusters.east, clusters.west, flow)
    sentence = notes(topology)["left-out-groups"]
    assert f"leaves out group connect-{topic_name}, with positions in topics" in sentence
    (of_flow,) = planned(topology)["flows"]
    assert of_flow["groups"] == {
        "positions": 1,
        "left_out": [f"connect-{topic_name}"],
        "untold": [],
        "unmatched": {},
    }


@pytest.mark.wide("test_a_flow_that_was_away")
def test_configs_of_a_topic_that_waits_for_a_decision_stay(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(clusters.east, topic_name)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    write(clusters.east, topic_name, numbered(3))
    run = replicate_once(spark, topology)
    set_configs(clusters.east, topic_name, {"retention.ms": "3600000"})
    until(lambda: [change["key"] for change in config_changes(topology)], gives=["retention.ms"])
    made_again = ReplicationError("it was made again", topic=topic_name)
    incidents = Incidents(run.lake)
    for kind in ("topic_recreated", "target_recreated"):
        incidents.open("east->west", kind, made_again)
        assert config_changes(topology) == []
        incidents.settle_all([IncidentKey("east->west", kind, topic_name)], "continue")
        assert [change["key"] for change in config_changes(topology)] == ["retention.ms"]
    incidents.open("east->west", "target_recreated", made_again)
    incidents.settle_all([IncidentKey("east->west", "target_recreated", topic_name)], "stop")
    assert config_changes(topology) == [], "nor of one that is stopped"


@pytest.mark.wide("test_a_flow_that_was_away")
def test_configs_of_a_topic_that_was_made_again_while_nothing_ran_stay(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(clusters.east, topic_name)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    write(clusters.east, topic_name, numbered(3))
    replicate_once(spark, topology)
    delete_topic(clusters.east, topic_name)
    create_topic(clusters.east, topic_name, retention_ms="3600000")
    assert config_changes(topology) == [], "the run will ask how it goes on, and keep them"


def config_changes(topology: Path) -> list[dict[str, str]]:
    (flow,) = planned(topology)["flows"]
    return list(flow["configs"])


def test_a_mirror_that_its_target_would_refuse_for_its_name(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(clusters.east, topic_name)
    mirror = f"east.{topic_name}"
    other = f"east_{topic_name}"
    create_topic(clusters.west, other)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    sentence = notes(topology)["colliding-names"]
    assert f"would be {mirror}, which cluster west refuses beside {other}" in sentence
    with pytest.raises(KafkaException, match="collides with existing topic"):
        create_topic(clusters.west, mirror)
