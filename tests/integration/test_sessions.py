"""The same code in other kinds of Spark session: Spark Connect, and executors in processes of their
own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer

import mirrorlake
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.spark.jars import spark_jars
from tests.support.clusters import ClusterPair
from tests.support.elsewhere import short_settings
from tests.support.guarded import guarded_cluster
from tests.support.kafka import create_topic, numbered, write
from tests.support.object_store import KEY, SECRET, Store

RECORDS, PARTITIONS = 3_000, 3
#: Settings of a cluster whose records the driver does not land itself.
BY_TASKS = {"small_batch_records": 0}


@pytest.fixture
def topology(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> Path:
    """A topology for one topic that has records already."""
    ClusterAdmin("east", {"bootstrap.servers": clusters.east}).create_topics(
        [TopicInfo(topic_name, PARTITIONS, 1)]
    )
    producer = Producer({"bootstrap.servers": clusters.east})
    for number in range(RECORDS):
        producer.produce(topic_name, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    path = tmp_path / "mirrorlake.yml"
    document = {
        "clusters": {
            "east": {"bootstrap_servers": clusters.east, "landing": BY_TASKS},
            "west": {"bootstrap_servers": clusters.west},
        },
        "lake": {"path": "./lake"},
        "flows": {"east->west": {"topics": [topic_name], "emit_heartbeats_enabled": False}},
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize(
    ("kind", "module"),
    [("connect", "pyspark.sql.connect.session"), ("cluster", "pyspark.sql.session")],
)
def test_land_produce_and_translate(
    kind: str, module: str, topology: Path, topic_name: str
) -> None:
    """Everything of a flow through Spark Connect, and with two executor processes."""
    assert seen_elsewhere(kind, topology, topic_name)["session"] == module


@pytest.mark.slow
def test_executors_with_a_lake_in_a_store(
    topology: Path, topic_name: str, object_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, SECRET)
    object_store.hold(topology, topic_name)
    seen_elsewhere("cluster", topology, topic_name)
    assert not (topology.parent / "lake").exists()


def seen_elsewhere(kind: str, topology: Path, topic_name: str) -> dict[str, Any]:
    """What a flow left that landed and produced by the executors of another session."""
    command = [
        sys.executable,
        "-m",
        "tests.support.elsewhere",
        kind,
        str(topology),
        "east->west",
        topic_name,
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert seen["staged"] == seen["mapped"] == RECORDS
    assert set(seen["readers"]) == {"files"}
    assert seen["there"] == {
        "topic": f"east.{topic_name}",
        "partition": 0,
        "offset": 7,
        "exact": True,
    }
    assert seen["back"] == {**seen["there"], "topic": topic_name}
    return seen


@pytest.mark.slow
def test_a_connect_server_writes_no_password_down(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """The server's event log holds the plan of every command that it got, also of those that hand
    a source and its tasks over."""
    password, events = 'hunter2; "of the brokers', tmp_path / "events"
    events.mkdir()
    with guarded_cluster(tmp_path, password) as guarded:
        create_topic(guarded.open, topic_name)
        write(guarded.open, topic_name, numbered(30))
        create_topic(clusters.east, f"{topic_name}-back")
        write(clusters.east, f"{topic_name}-back", numbered(30))
        path = tmp_path / "mirrorlake.yml"
        document = {
            "clusters": {
                "east": {"bootstrap_servers": clusters.east},
                "north": {**guarded.entry(), "landing": BY_TASKS},
            },
            "lake": {"path": "./lake"},
            "defaults": {"emit_heartbeats_enabled": False, "emit_checkpoints_enabled": False},
            "flows": {
                "north->east": {"topics": [topic_name]},
                "east->north": {"topics": [f"{topic_name}-back"]},
            },
        }
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "tests.support.elsewhere",
            "connect",
            str(path),
            "north->east",
            topic_name,
        ]
        environment = {**os.environ, "MIRRORLAKE_TEST_EVENTS": events.as_uri()}
        environment |= {"MIRRORLAKE_SECRETS": str(guarded.secrets)}
        folder = Path(__file__).parents[2]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=400,
            cwd=folder,
            check=False,
            env=environment,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1])["staged"] == 60
    logs = [path.read_text() for path in events.rglob("*") if path.is_file()]
    assert any(
        "SparkListenerConnectOperationStarted" in text and "mirrorlake_land_north" in text
        for text in logs
    )
    assert not [text for text in [*logs, done.stdout, done.stderr] if "hunter2" in text]


@pytest.mark.slow
def test_a_command_uses_the_session_of_spark_submit(topology: Path, tmp_path: Path) -> None:
    """As the README says it, on executors in processes of their own; Spark's event log says whose
    session it was."""
    folder, events = Path(mirrorlake.__path__[0]), tmp_path / "events"
    events.mkdir()
    master = "local-cluster[2,1,1024]"
    options = {**short_settings(), "spark.jars": ",".join(map(str, spark_jars()))}
    options |= {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
    options["spark.eventLog.dir"] = events.as_uri()
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", master]
    command += [part for key, value in options.items() for part in ("--conf", f"{key}={value}")]
    command += [str(folder / "__main__.py"), "-c", str(topology), "run", "--once"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(folder.parent)}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"{RECORDS:,} records" in done.stdout + done.stderr
    logs = [path.read_text() for path in events.rglob("*") if path.is_file()]
    assert any(f'"spark.master":"{master}"' in text for text in logs)
