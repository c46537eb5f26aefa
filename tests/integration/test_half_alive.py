"""A source of three brokers of which one is away: what did not answer is unknown, not gone, and the
rest goes on."""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.errors import ReplicationError
from mirrorlake.groups.checkpoint_plan import GONE
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.arriving_ends import ArrivingEnds
from mirrorlake.kafka.groups import GroupAdmin
from mirrorlake.kafka.quick_admin import FEW_QUESTIONS, MANY_TOPICS
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.offsets.positions import Committed
from tests.support.clusters import ClusterPair
from tests.support.frozen import frozen
from tests.support.groups import checkpoints_of, commit_all, delete_groups
from tests.support.half_alive import ThreeBrokers, three_brokers
from tests.support.kafka import NewRecord, create_topic, numbered, record_count, write
from tests.support.lake_rows import now_of
from tests.support.replication import FLOW, replicate_once, write_topology
from tests.support.topologies import incidents, live, write_flows
from tests.support.waiting import until

pytestmark = pytest.mark.slow

RECORDS = 300
GROUPS = 12
#: Partitions of one copy over three brokers, for how long the others may hold up those that are
#: led, seconds, and in how many commits 400 incidents may be told and closed.
WIDE, HELD_UP_SECONDS, COMMITS = 600, 45.0, 12
CHECKPOINTED = f"SELECT group_id, reason FROM group_positions WHERE flow = '{FLOW}'"


@pytest.fixture(scope="module")
def east(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    with three_brokers(tmp_path_factory.mktemp("three")) as made:
        yield made


def call(topology: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """A command's exit code, and its document."""
    result = CliRunner().invoke(app, ["-c", str(topology), *arguments, "--json"])
    assert result.stdout, (result.output, result.exception)
    return result.exit_code, json.loads(result.stdout)


def test_groups_of_a_coordinator_that_is_away_are_unknown_and_not_gone(
    spark: SparkSession, east: ThreeBrokers, clusters: ClusterPair, tmp_path: Path
) -> None:
    name = f"half-{uuid.uuid4().hex[:6]}"
    groups = {f"{name}-g{number}" for number in range(GROUPS)}
    create_topic(east.address, name, 3)
    write(east.address, name, numbered(RECORDS, 3))
    commit_all(east.address, name, groups, 50)
    settings = {"topics": [name], "groups": [f"{name}-.*"], "emit_checkpoints_enabled": True}
    topology = write_topology(tmp_path, east.address, clusters.west, settings)
    lake = replicate_once(spark, topology).lake

    homes = east.coordinators(groups)
    away = homes[f"{name}-g0"]
    lost = {group for group in groups if homes[group] == away}
    leaderless = next(number for number, leader in east.leaders(name).items() if leader == away)
    delete_groups(clusters.west, groups)  # so that there is something to be moved
    east.kill(away)
    began = datetime.now(timezone.utc)

    code, shown = call(topology, "groups", "--flow", FLOW)
    (flow,) = shown["flows"]
    assert code == 1 and flow["untold"], "a coordinator is away"
    assert (
        flow["errors"].keys() == lost and {row["group"] for row in flow["groups"]} == groups - lost
    )

    with pytest.raises(ReplicationError, match="did not report"):
        checkpoints_of(topology, lake).source.checkpoint()
    rows = now_of(lake).rows(CHECKPOINTED)
    assert {row["group_id"] for row in rows} == groups and GONE not in {
        row["reason"] for row in rows
    }

    code, found = call(topology, "failover", "--flow", FLOW, "--all-groups")
    assert code == 1 and not found["complete"]
    assert {row["group"] for row in found["groups"]} == groups - lost
    assert {row["done"] for row in found["groups"]} <= {"moved", "there"}, (
        "the turn before has moved them, or not yet"
    )
    assert all(
        any(f"group {group} was not reported" in line for line in found["left"]) for group in lost
    ), found["left"]
    assert any(f"{name}-{leaderless}" in line for line in found["left"]), "its end is not known"
    code, found = call(topology, "failover", "--flow", FLOW, "--no-drain", "--group", f"{name}-g0")
    assert code == 1 and "was not reported" in " ".join(found["left"])
    sampled = now_of(lake).rows(f"SELECT * FROM positions WHERE topic = '{name}'")
    fresh = [row for row in sampled if row["sampled_at"].astimezone(timezone.utc) > began]
    away_now = {row["partition"] for row in fresh if row["source_end"] is None}
    assert away_now == {leaderless} and len(fresh) > 1, "samples of the others go on, or hold"

    east.bring_back(away)
    gone = f"{name}-g0"
    delete_groups(east.address, [gone])
    checkpoints_of(topology, lake).source.checkpoint()
    rows = now_of(lake).rows(CHECKPOINTED)
    assert {row["group_id"] for row in rows if row["reason"] == GONE} == {gone}
    code, found = call(topology, "failover", "--flow", FLOW, "--all-groups")
    assert code == 0, found["left"]
    assert {row["group"] for row in found["groups"]} == groups - {gone}


def test_hundreds_of_partitions_without_a_leader_hold_up_none_of_the_others(
    spark: SparkSession, east: ThreeBrokers, clusters: ClusterPair, tmp_path: Path
) -> None:
    """They are told together for both flows, and closed together."""
    topic = f"wide-{uuid.uuid4().hex[:6]}"
    create_topic(east.address, topic, WIDE)
    commit_all(east.address, topic, ["reads"], 0, partitions=1)  # positions are kept from then on
    delete_groups(east.address, {"reads"})
    targets = {"west": clusters.west, "north": clusters.east}
    flows = {f"east->{name}": {"topics": [topic]} for name in targets}
    topology = write_flows(tmp_path, {"east": east.address, **targets}, flows)
    leaders = east.leaders(topic)
    away = leaders[0]
    lost = [number for number, leader in leaders.items() if leader == away]
    led = sorted(leaders.keys() - lost)
    assert len(lost) > WIDE / 4
    written = 0

    def write_to(numbers: Iterable[int]) -> None:
        nonlocal written
        records = [NewRecord(b"%d" % number, partition=number) for number in numbers]
        write(east.address, topic, records)
        written += len(records)

    def arrived() -> bool:
        counts = [record_count(address, f"east.{topic}") for address in targets.values()]
        return counts == [written, written]

    def told() -> int:
        return len(incidents(run.lake, "source_refused"))

    with live(spark, topology) as run:
        write_to(leaders)
        until(arrived, "all are there", 150)
        east.kill(away)
        write_to(led)
        until(arrived, "what has a leader goes on", HELD_UP_SECONDS)
        until(told, "each of the others is told, of both flows", gives=2 * len(lost))
        write_to(led)
        until(arrived, "it goes on beside them", HELD_UP_SECONDS)
        east.bring_back(away)
        write_to(leaders)
        until(arrived, "all go on", 150)
        until(lambda: not incidents(run.lake), "and nothing is told any more")
        commits = run.lake.version_of("incidents")
    assert commits < COMMITS, commits


def test_partitions_whose_leader_is_back_are_answered_soon(
    east: ThreeBrokers, topic_name: str
) -> None:
    """By the client that is asked about many, where the cluster has few topics, and where few of
    its partitions are asked for."""
    create_topic(east.address, topic_name, WIDE // 10)
    commit_all(east.address, topic_name, ["reads"], 0, partitions=1)  # positions are kept then
    delete_groups(east.address, {"reads"})
    settings: dict[str, str | int | bool] = {"bootstrap.servers": east.address, "log_level": 0}
    ends = ArrivingEnds(ClusterAdmin("east", settings))
    leaders = east.leaders(topic_name)
    keys = [(topic_name, number) for number in leaders]

    def of(some: list[tuple[str, int]]) -> Callable[[], bool]:
        return lambda: ends.of(some).keys() == set(some)

    for _ in range(FEW_QUESTIONS + 2):
        until(of(keys), "all are answered")
    assert ends._admin.client._describer is not None, "they are asked of one client"
    away = leaders[0]
    led = [key for key in keys if leaders[key[1]] != away]
    lost = [key for key in keys if leaders[key[1]] == away]
    east.kill(away)
    until(of(led), "others are", 30)
    ends.of(keys)
    east.bring_back(away)
    until(of(lost[: MANY_TOPICS // 2]), "few are", 30)
    until(of(keys), "all are", 30)


def test_one_bad_coordinator_holds_up_its_own_groups_only(east: ThreeBrokers) -> None:
    name = f"many-{uuid.uuid4().hex[:6]}"
    create_topic(east.address, name)
    client: dict[str, str | int | bool] = {"bootstrap.servers": east.address, "log_level": 0}
    settings = LiveSettings[str | int | bool](lambda: client)
    admin = GroupAdmin(ClusterAdmin("east", settings), settings)
    groups = [f"{name}-{number}" for number in range(4_000)]
    assert (
        admin.move({group: {(name, 0): Committed(number)} for number, group in enumerate(groups)})
        == {}
    )
    homes = east.coordinators(groups)
    away = homes[groups[0]]
    lost = {group for group in groups if homes[group] == away}
    with frozen([east.cluster.pids[away]]):
        # some ask the broker that says nothing who their coordinator is
        first = admin.positions(groups)
        assert lost <= first.errors.keys() and first.positions.keys() - lost
        told = admin.positions(groups)
        assert told.errors.keys() == lost
        assert {group for group, found in told.positions.items() if found} == set(groups) - lost
    admin.close()
