"""Embedded clusters are real brokers: data outlives kill -9, and no broker outlives its parent."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorlake.config.topology import load_topology
from mirrorlake.devtools.local import develop
from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.devtools.local.ports import free_ports, is_free
from mirrorlake.errors import ClusterUnreachable, InputError

TOPIC = "orders"
CHILD = """
import sys, threading
from pathlib import Path
from mirrorlake.devtools.local.clusters import start_clusters
clusters = start_clusters(["one"], Path(sys.argv[1]))
sys.stdout.write(f"{clusters['one'].pids[0]}\\n")
sys.stdout.flush()
threading.Event().wait()
"""


def create_topic(cluster: EmbeddedCluster, copies: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, 1, copies)])[TOPIC].result(20)


def produce(cluster: EmbeddedCluster, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for value in values:
        producer.produce(TOPIC, value)
    assert producer.flush(20) == 0


def consume(cluster: EmbeddedCluster, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "test", "log_level": 0}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    messages = consumer.consume(count, timeout=20)
    consumer.close()
    return [message.value() for message in messages]


def read(bootstrap_servers: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "test", "log_level": 0}
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    messages = consumer.consume(count, timeout=5)
    consumer.close()
    return [message.value() for message in messages]


def positions(bootstrap_servers: str, group: str, topic: str, partitions: int) -> int:
    """The positions of a group, all together."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group, "log_level": 0})
    committed = consumer.committed(
        [TopicPartition(topic, partition) for partition in range(partitions)], timeout=5
    )
    consumer.close()
    return sum(max(0, item.offset) for item in committed)


def is_gone(pid: int) -> bool:
    """Nothing is left of a process, or only the entry that whoever adopted it has not read yet."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def becomes_true(fact: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.wide("test_development_clusters_outlive_the_command")
def test_killed_broker_comes_back_with_its_data_and_address(tmp_path: Path) -> None:
    with EmbeddedCluster("east", tmp_path) as cluster:
        address, first = cluster.bootstrap_servers, cluster.pids
        create_topic(cluster)
        produce(cluster, [b"a", b"b"])
        cluster.kill()
        assert cluster.pids == []
        assert is_gone(first[0])
        cluster.start_broker()
        assert cluster.pids != first
        assert cluster.bootstrap_servers == address
        assert consume(cluster, 2) == [b"a", b"b"]
        last = cluster.pids
    assert is_gone(last[0])
    again = EmbeddedCluster("east", tmp_path)
    assert (again.bootstrap_servers, again.cluster_id) == (address, cluster.cluster_id)


@pytest.mark.wide("test_development_clusters_outlive_the_command")
def test_broker_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        broker = int(child.stdout.readline())
        assert psutil.Process(broker).is_running()
        os.kill(child.pid, signal.SIGKILL)
        child.wait(10)
        child.stdout.close()
        assert becomes_true(lambda: is_gone(broker), 10)
    finally:
        child.kill()


def test_broker_that_cannot_start_names_its_log(tmp_path: Path) -> None:
    cluster = EmbeddedCluster("east", tmp_path, properties={"log.retention.bytes": "many"})
    with pytest.raises((ClusterUnreachable, InputError)) as raised:
        cluster.start()
    log = next(
        Path(word.rstrip(",")) for word in raised.value.message.split() if word.endswith(".log")
    )
    assert log.exists()
    assert cluster.pids == []


def test_a_machine_too_busy_to_format_in_time_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirrorlake.devtools.local.broker._FORMAT_SECONDS", 0.01)
    with pytest.raises(InputError, match="within 0.01 s: this machine may be too busy; try again"):
        EmbeddedCluster("slow", tmp_path / "slow").start()


def test_taken_port_is_an_input_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]
        with pytest.raises(InputError, match=str(port)):
            EmbeddedCluster("west", tmp_path, ports=[port]).start()


def test_ports_are_different_and_free() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(is_free(port) for port in ports)
    assert not set(ports) & set(free_ports(20))


def test_development_clusters_outlive_the_command(tmp_path: Path) -> None:
    topology = tmp_path / "mirrorlake.yml"
    program = (
        "import sys; from pathlib import Path; from mirrorlake.devtools.local.develop import up; "
        "up(Path(sys.argv[1]), ['east', 'west'], 1, topology=Path(sys.argv[2]))"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "local"), str(topology)],
        check=True,
        timeout=120,
    )
    try:
        running = develop.status(tmp_path / "local")
        assert [(each.name, each.running) for each in running] == [("east", True), ("west", True)]
        written = load_topology(topology)
        assert [each.bootstrap_servers for each in written.clusters.values()] == [
            each.bootstrap_servers for each in running
        ]
        with pytest.raises(InputError, match="local down"):
            EmbeddedCluster("east", tmp_path / "local" / "east").start()
        assert develop.up(tmp_path / "local", ["east", "west"], 1, topology=topology) == running
        loaded = develop.up(tmp_path / "local", ["east", "west"], 1, topology=topology, load=500)
        assert [each.load_pid is not None for each in loaded] == [True, False]
        assert (
            develop.up(tmp_path / "local", ["east", "west"], 1, topology=topology, load=500)
            == loaded
        ), "one is enough"
        assert becomes_true(
            lambda: len(read(running[0].bootstrap_servers, "orders", 300)) == 300, 30
        )
        assert becomes_true(
            lambda: positions(running[0].bootstrap_servers, "billing", "orders", 3) > 0, 30
        )
    finally:
        stopped = develop.down(tmp_path / "local")
    assert [(each.running, each.load_pid) for each in stopped] == [(False, None), (False, None)]
    assert is_gone(loaded[0].load_pid or 0)
    assert all(is_gone(pid) for each in running for pid in each.pids)


@pytest.mark.parametrize("names", [[], ["a", "a"], ["../a"], ["a b"]])
def test_names_that_cannot_be_folders_are_refused(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(InputError, match="cluster names"):
        develop.up(tmp_path, names, 1, topology=None)


@pytest.mark.slow
def test_three_brokers_lose_one_and_go_on(tmp_path: Path) -> None:
    with EmbeddedCluster("east", tmp_path, brokers=3, heap="256m") as cluster:
        assert len(cluster.pids) == 3
        create_topic(cluster, copies=3)
        produce(cluster, [b"a"])
        cluster.kill(0)
        produce(cluster, [b"b"])
        cluster.start_broker(0)
        assert consume(cluster, 2) == [b"a", b"b"]
