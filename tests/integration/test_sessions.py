"""The same code in other kinds of Spark session: Spark Connect, and executors in processes of their own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from mirrorlake.kafka.admin import ClusterAdmin, TopicInfo
from tests.support.clusters import ClusterPair

RECORDS, PARTITIONS = 3_000, 3


@pytest.fixture
def topology(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> Path:
    """A topology for one topic that has records already."""
    ClusterAdmin("east", {"bootstrap.servers": clusters.east}).create_topics([TopicInfo(topic_name, PARTITIONS, 1)])
    producer = Producer({"bootstrap.servers": clusters.east})
    for number in range(RECORDS):
        producer.produce(topic_name, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    path = tmp_path / "mirrorlake.yml"
    document = {
        "clusters": {"east": {"bootstrap_servers": clusters.east}, "west": {"bootstrap_servers": clusters.west}},
        "lake": {"path": "./lake"},
        "flows": {"east->west": {"topics": [topic_name], "emit_heartbeats_enabled": False}},
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "module"), [("connect", "pyspark.sql.connect.session"), ("cluster", "pyspark.sql.session")]
)
def test_land_produce_and_translate(kind: str, module: str, topology: Path, topic_name: str) -> None:
    """Everything of a flow through Spark Connect, and with two executor processes."""
    command = [sys.executable, "-m", "tests.support.elsewhere", kind, str(topology), "east->west", topic_name]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, cwd=Path(__file__).parents[2], check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["session"] == module
    assert seen["staged"] == seen["mapped"] == RECORDS
    assert set(seen["readers"]) == {"files"}
    assert seen["there"] == {"topic": f"east.{topic_name}", "partition": 0, "offset": 7, "exact": True}
    assert seen["back"] == {"topic": topic_name, "partition": 0, "offset": 7, "exact": True}
