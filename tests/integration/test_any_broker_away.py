"""A source of three brokers of which any one is dead, frozen, or replaced by something that
refuses: every command does all of it, or exits 1 and names what is left."""

import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.errors import MirrorlakeError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_acls import NoAcls, describe_topic_acls
from tests.support.clusters import ClusterPair
from tests.support.groups import commit_all, delete_groups
from tests.support.half_alive import ThreeBrokers, three_brokers
from tests.support.kafka import create_topic, numbered, read_topic, write
from tests.support.replication import FLOW, replicate_once, write_topology

pytestmark = pytest.mark.slow

PARTITIONS = 3
GROUPS = 6


@pytest.fixture(scope="module")
def east(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    with three_brokers(tmp_path_factory.mktemp("three")) as made:
        yield made


def call(topology: Path, *arguments: str) -> tuple[int, str]:
    """A command's exit code and all that it said."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    result = CliRunner().invoke(app, ["-c", str(topology), *arguments])
    for number, handler in handlers.items():  # `run` has its own
        signal.signal(number, handler)
    error = result.exception
    if isinstance(error, MirrorlakeError):
        return error.exit_code, f"{result.output}{error}"
    assert error is None or isinstance(error, SystemExit), (arguments, result.output, error)
    return result.exit_code, result.output


def test_a_frozen_broker_that_is_named_as_the_controller(east: ThreeBrokers) -> None:
    """Clients that know none else ask another one before the cluster itself knows it."""
    topic = f"any-controller-{uuid.uuid4().hex[:6]}"
    create_topic(east.address, topic, PARTITIONS)
    admin = ClusterAdmin("east", {"bootstrap.servers": east.address})
    assert topic in admin.topics()
    named = admin.client.list_topics(timeout=20).controller_id
    with east.away(named, "frozen"):
        began = time.monotonic()
        assert admin.identities([topic])[0].keys() == {topic}
        assert isinstance(describe_topic_acls(admin), NoAcls)
        assert time.monotonic() - began < 40


@pytest.mark.parametrize("how", ["dead", "frozen", "refusing"])
def test_a_command_does_all_of_it_or_names_what_is_left(
    spark: SparkSession, east: ThreeBrokers, clusters: ClusterPair, tmp_path: Path, how: str
) -> None:
    topic = f"any-{how}-{uuid.uuid4().hex[:6]}"
    groups = [f"{topic}-g{number}" for number in range(GROUPS)]
    create_topic(east.address, topic, PARTITIONS)
    write(east.address, topic, numbered(90, PARTITIONS))
    commit_all(east.address, topic, groups, 10)
    settings = {"topics": [topic], "groups": [f"{topic}-.*"], "emit_checkpoints_enabled": True}
    topology = write_topology(tmp_path, east.address, clusters.west, settings)
    replicate_once(spark, topology)
    delete_groups(clusters.west, groups)
    write(east.address, topic, numbered(90, PARTITIONS, start=90))
    homes, leaders = east.coordinators(groups), east.leaders(topic)
    node = homes[groups[0]]
    lost = {group for group in groups if homes[group] == node}
    blind = next(number for number, leader in leaders.items() if leader == node)

    with east.away(node, how):
        code, said = call(topology, "groups", "--flow", FLOW, "--json")
        assert code == 1 and all(group in said for group in groups), said
        for command in ("failover", "failback"):
            code, said = call(topology, command, "--flow", FLOW, "--all-groups", "--json")
            assert code == 1 and all(group in said for group in lost), said
        code, said = call(topology, "run", "--once")
        assert code == 1 and f"{topic}-{blind}" in said, said
        there = read_topic(clusters.west, f"east.{topic}")
        assert [len(there[number]) for number in range(PARTITIONS)] == [
            30 if n == blind else 60 for n in range(PARTITIONS)
        ]
        code, said = call(topology, "plan")
        assert code in (0, 1) and (code == 0 or "east" in said), said
        code, said = call(topology, "status")
        assert code == 1 and topic in said, said

    code, said = call(topology, "run", "--once")
    assert code == 0, said
    assert [len(records) for records in read_topic(clusters.west, f"east.{topic}")] == [
        60
    ] * PARTITIONS
    code, said = call(topology, "failover", "--flow", FLOW, "--all-groups", "--json")
    assert code == 0 and all(group in said for group in groups), said
