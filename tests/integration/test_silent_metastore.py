"""A Hive metastore that does not answer ends each command with one sentence, in time."""

import shlex
import socket
import time
from pathlib import Path

import pytest

from mirrorlake.devtools.local.ports import free_ports
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, read_topic
from tests.support.lake_rows import FLOW, write_file
from tests.support.metastore import Metastore, metastore_at
from tests.support.replication import write_topology


@pytest.mark.slow  # what Hive raises then: tests/unit/spark/test_causes.py
def test_a_metastore_that_is_not_there(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    nowhere = metastore_at(port, tmp_path)
    topology = write_file(tmp_path)
    nowhere.hold(topology, at_a_path=False)
    asked = ("--flow", FLOW, "--topic", "orders", "--partition", "0", "--offset", "1")
    assert_silence(nowhere, "Connection refused", topology, "translate", *asked)


@pytest.mark.slow
@pytest.mark.parametrize("at_a_path", [True, False], ids=["path", "catalog"])
def test_no_command_goes_on_without_it(
    clusters: ClusterPair, topic_name: str, tmp_path: Path, at_a_path: bool
) -> None:
    (port,) = free_ports(1)
    nowhere = metastore_at(port, tmp_path)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    nowhere.hold(topology, at_a_path)
    create_topic(clusters.east, topic_name)
    commands = ["register", "run --once --register"]
    if not at_a_path:
        commands = ["run --once", "status", "verify", "maintain", "groups", "sql 'SELECT 1 AS a'"]
    for command in commands:
        assert_silence(nowhere, "Connection refused", topology, *shlex.split(command))
    assert read_topic(clusters.west, f"east.{topic_name}") == []


@pytest.mark.slow
def test_a_metastore_that_takes_the_connection_alone(tmp_path: Path) -> None:
    """Hive's client itself would wait ten minutes for each answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        metastore = metastore_at(silent.getsockname()[1], tmp_path)
        topology = write_file(tmp_path)
        metastore.hold(topology, at_a_path=False)
        began = time.monotonic()
        assert_silence(metastore, "Read timed out", topology, "status")
        assert time.monotonic() - began < 500


def assert_silence(metastore: Metastore, reason: str, topology: Path, *words: str) -> None:
    """A command ends with one sentence that names the metastore and says why."""
    done = metastore.command(topology, *words)
    assert done.returncode == 2, done.stderr[-4000:]
    *_, told = done.stderr.splitlines()
    assert told.startswith(f"mirrorlake: the Hive metastore at thrift://127.0.0.1:{metastore.port}")
    assert reason in told and "start it, or let hive.metastore.uris" in told
    assert "Traceback" not in done.stderr and done.stdout == ""
