"""Consumer groups on real clusters: checkpoints, sync, failover and failback, to the record."""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake import failpoints
from mirrorlake.cli.main import app
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError
from mirrorlake.failover.failover import MoveOptions, move_groups, planned_moves
from mirrorlake.groups.checkpoint_plan import GONE, PAST_END, Checkpoint
from mirrorlake.groups.group_sync import GroupTurns
from mirrorlake.groups.shared_topics import Direction, Route
from mirrorlake.groups.sync_plan import ACTIVE, BEHIND
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.offsets.positions import Committed, TopicAndPartition
from tests.support.clusters import ClusterPair
from tests.support.groups import checkpoints_of
from tests.support.kafka import (
    NewRecord,
    Record,
    assign,
    create_topic,
    numbered,
    read_topic,
    send,
    transactional_producer,
    write,
)
from tests.support.lake_rows import append, now_of
from tests.support.replication import FLOW, QUIET, replicate_once, write_topology

RECORDS, TRANSACTIONS = 5_000, 150
LAGS = (0, 10, 1_000)


def committed(
    bootstrap: str, group: str, keys: list[TopicAndPartition]
) -> dict[TopicAndPartition, tuple[int, str]]:
    """What a group has committed."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    found = consumer.committed([TopicPartition(*key) for key in keys], 20)
    consumer.close()
    return {
        (item.topic, item.partition): (item.offset, item.metadata or "")
        for item in found
        if item.offset >= 0
    }


def commit(
    bootstrap: str, group: str, topic: str, partition: int, offset: int, metadata: str = ""
) -> None:
    """Commit a position as a group without members does."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    )
    consumer.commit(
        offsets=[TopicPartition(topic, partition, offset, metadata=metadata)], asynchronous=False
    )
    consumer.close()


def end_of(bootstrap: str, topic: str, partition: int) -> int:
    """The end of the log, uncommitted records included."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "ends", "isolation.level": "read_uncommitted"}
    )
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), 20)
    consumer.close()
    return int(end)


def unread(bootstrap: str, group: str, topic: str, limit: int | None = None) -> list[bytes | None]:
    """What a real consumer of the group reads from its positions to the end; commits what it read,
    and leaves."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
        }
    )
    assign(consumer, [TopicPartition(topic, 0)])  # from the committed position
    values: list[bytes | None] = []
    while limit is None or len(values) < limit:
        (message,) = consumer.consume(1, timeout=20)
        if message.error() is not None:
            break
        values.append(message.value())
        last = message.offset()
    if values:
        consumer.commit(offsets=[TopicPartition(topic, 0, last + 1)], asynchronous=False)
    consumer.close()
    return values


GROUPS = {"emit_checkpoints_enabled": True}


@dataclass
class Scene:
    """A flow that has run once, with groups at its source."""

    clusters: ClusterPair
    topology: Path
    lake: Lake
    name: str
    source: Mapping[str, list[Record]]

    @property
    def connections(self) -> Connections:
        return Connections(load_topology(self.topology))

    def topic(self, kind: str) -> str:
        return f"{self.name}-{kind}"

    def group(self, kind: str) -> str:
        return f"{self.name}-{kind}"

    def checkpoints(self) -> GroupTurns:
        """The control tasks of groups, as a replicator that has just started has them."""
        return checkpoints_of(self.topology, self.lake)

    def newest(self) -> dict[tuple[str, str, int], Any]:
        rows = now_of(self.lake).rows(f"SELECT * FROM group_positions WHERE flow = '{FLOW}'")
        return {
            (
                row["group_id"].removeprefix(f"{self.name}-"),
                row["topic"].removeprefix(f"{self.name}-"),
                row["partition"],
            ): row
            for row in rows
        }

    def move(self, *groups: str, reverse: bool = False, **options: Any) -> dict[str, Any]:
        connections = self.connections
        flow = connections.topology.flow(FLOW)
        named = tuple(self.group(group) for group in groups) or None
        wanted = MoveOptions(named, **{"drain": False, **options})
        if wanted.dry_run:  # as the library asks
            route = Route(flow, reverse, lake=now_of(self.lake), connections=connections)
            return planned_moves(route, wanted)
        deployment = Deployment.opened(self.lake, connections)
        return move_groups(deployment, Direction(flow, reverse), wanted)

    def at_target(self, group: str, kind: str, partition: int = 0) -> tuple[int, str] | None:
        key = (f"east.{self.topic(kind)}", partition)
        return committed(self.clusters.west, self.group(group), [key]).get(key)

    def position(self, kind: str, lag: int) -> int:
        """The position of a group that has all but the last `lag` records behind it."""
        records = self.source[kind]
        return records[-lag].offset if lag else records[-1].offset + 1

    def rest(self, kind: str, lag: int) -> list[bytes | None]:
        return [record.value for record in self.source[kind]][len(self.source[kind]) - lag :]


@pytest.fixture(scope="module")
def scene(
    spark: SparkSession, clusters: ClusterPair, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    name = f"groups-{uuid.uuid4().hex[:6]}"
    for kind, partitions in (("plain", 2), ("marked", 1), ("void", 1)):
        create_topic(clusters.east, f"{name}-{kind}", partitions)
    write(clusters.east, f"{name}-plain", numbered(RECORDS))
    producer = transactional_producer(clusters.east)
    for number in range(TRANSACTIONS):  # a marker every second offset
        producer.begin_transaction()
        send(producer, f"{name}-marked", NewRecord(b"%d" % number))
        producer.commit_transaction(30)
    source = {kind: read_topic(clusters.east, f"{name}-{kind}")[0] for kind in ("plain", "marked")}
    settings = {"topics": [f"{name}-.*"], "groups": [f"{name}-.*", "mirrorlake-.*"], **GROUPS}
    topology = write_topology(
        tmp_path_factory.mktemp("groups"), clusters.east, clusters.west, settings
    )
    made = Scene(clusters, topology, None, name, source)  # type: ignore[arg-type]
    for lag in LAGS:
        commit(
            clusters.east,
            made.group(f"lag{lag}"),
            made.topic("plain"),
            0,
            made.position("plain", lag),
            f"m{lag}",
        )
    for lag in (0, 10, 100):
        commit(
            clusters.east,
            made.group(f"tx{lag}"),
            made.topic("marked"),
            0,
            made.position("marked", lag),
        )
    # Behind the marker of the last record: where a consumer that has read all commits.
    commit(
        clusters.east, made.group("txend"), made.topic("marked"), 0, made.position("marked", 0) + 1
    )
    commit(clusters.east, made.group("lag0"), made.topic("plain"), 1, 0)
    commit(clusters.east, made.group("void"), made.topic("void"), 0, 0)
    commit(clusters.east, made.group("held"), made.topic("plain"), 0, RECORDS + 70)
    commit(clusters.east, "mirrorlake-0a1b2c3d-west->east", made.topic("plain"), 0, 3)
    made.lake = replicate_once(spark, topology).lake
    yield made


def test_a_run_writes_checkpoints_and_moves_absent_groups(scene: Scene) -> None:
    newest = scene.newest()
    assert {key[0] for key in newest} == {
        *(f"lag{lag}" for lag in LAGS),
        "tx0",
        "tx10",
        "tx100",
        "txend",
        "held",
        "void",
    }
    assert (
        newest["lag0", "plain", 1]["target_position"]
        == newest["void", "void", 0]["target_position"]
        == 0
    )
    held = newest["held", "plain", 0]
    assert held["target_position"] == RECORDS and held["reason"].startswith(PAST_END)
    for lag in LAGS:
        row = newest[f"lag{lag}", "plain", 0]
        assert (row["synced"], row["reason"], row["metadata"]) == (True, None, f"m{lag}")
        assert scene.at_target(f"lag{lag}", "plain") == (row["target_position"], f"m{lag}")
    assert newest["txend", "marked", 0]["reason"] is None
    count = len(now_of(scene.lake).table_rows("checkpoints"))
    checkpoints = scene.checkpoints()
    assert (checkpoints.source.checkpoint(), checkpoints.target.sync()) == ([], [])
    assert len(now_of(scene.lake).table_rows("checkpoints")) == count


def test_groups_read_after_failover_exactly_what_they_had_not(scene: Scene) -> None:
    cases = [(f"lag{lag}", "plain", lag) for lag in LAGS]
    cases += [(f"tx{lag}", "marked", lag) for lag in (0, 10, 100)] + [("txend", "marked", 0)]
    moved = scene.move(*(group for group, _, _ in cases))
    assert moved["complete"] and not moved["left"]
    assert {row["done"] for row in moved["groups"]} == {"there"}
    assert all(row["exact"] and row["read_again_at_most"] == 0 for row in moved["groups"])
    for group, kind, lag in cases:
        got = unread(scene.clusters.west, scene.group(group), f"east.{scene.topic(kind)}")
        assert got == scene.rest(kind, lag), f"{group}: {len(got)} records instead of {lag}"


def test_failback_reads_at_home_exactly_what_was_not_read_there(scene: Scene) -> None:
    plain = scene.topic("plain")
    commit(scene.clusters.west, scene.group("home"), f"east.{plain}", 0, 100, "w")
    read = unread(scene.clusters.west, scene.group("home"), f"east.{plain}", limit=4_000)
    tried = scene.move("home", reverse=True, dry_run=True)
    assert [row["done"] for row in tried["groups"]] == ["would move"]
    assert committed(scene.clusters.east, scene.group("home"), [(plain, 0)]) == {}
    moved = scene.move("home", reverse=True)
    assert moved["complete"] and [row["done"] for row in moved["groups"]] == ["moved"]
    values = [record.value for record in scene.source["plain"]]
    assert read == values[100:4_100]
    assert unread(scene.clusters.east, scene.group("home"), plain) == values[4_100:]
    # In the middle of a topic with markers: between two records of the source lies one offset more.
    commit(scene.clusters.west, scene.group("txhome"), f"east.{scene.topic('marked')}", 0, 0)
    got = unread(
        scene.clusters.west, scene.group("txhome"), f"east.{scene.topic('marked')}", limit=40
    )
    assert scene.move("txhome", reverse=True)["complete"]
    rest = unread(scene.clusters.east, scene.group("txhome"), scene.topic("marked"))
    assert [*got, *rest] == [record.value for record in scene.source["marked"]]
    row = scene.newest()["home", "plain", 0]
    assert (row["source_position"], row["target_position"], row["reason"]) == (
        4_100,
        4_100,
        "failback",
    )


@pytest.mark.wide("simulation/test_group_schedules.py::test_no_schedule_breaks_a_law_of_groups")
@pytest.mark.law("never backwards")
def test_a_group_rewound_at_the_source_moves_only_when_forced(scene: Scene) -> None:
    group = scene.group("rewound")
    checkpoints = scene.checkpoints()
    for position in (3_000, 1_200):
        commit(scene.clusters.east, group, scene.topic("plain"), 0, position)
        checkpoints.source.checkpoint()
        checkpoints.target.sync()
    row = scene.newest()["rewound", "plain", 0]
    assert (row["source_position"], row["target_position"], row["synced"], row["reason"]) == (
        1200,
        1200,
        False,
        BEHIND,
    )
    assert scene.at_target("rewound", "plain") == (3_000, "")
    moved = scene.move("rewound")
    assert not moved["complete"] and BEHIND in moved["left"][0]
    assert scene.move("rewound", force=True)["complete"]
    assert scene.at_target("rewound", "plain") == (1_200, "")
    query = (
        f"SELECT * FROM changes WHERE kind = 'group' AND startswith(resource, '{group}') ORDER "
        "BY at"
    )
    assert [
        (row["outcome"], row["before"], row["after"]) for row in now_of(scene.lake).rows(query)
    ] == [
        ("done", None, "3000"),  # by group sync
        ("refused", "3000", "1200"),
        ("done", "3000", "1200"),
    ]


@pytest.mark.wide("test_a_run_writes_checkpoints_and_moves_absent_groups")
@pytest.mark.law("never backwards")
def test_an_active_group_is_not_touched_and_an_empty_one_is(scene: Scene) -> None:
    topic = f"east.{scene.topic('plain')}"
    consumer = Consumer(
        {
            "bootstrap.servers": scene.clusters.west,
            "group.id": scene.group("active"),
            "auto.offset.reset": "latest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        for _ in range(60):
            consumer.poll(0.5)
            if consumer.assignment():
                break
        assert consumer.assignment()
        commit(scene.clusters.west, scene.group("idle"), topic, 0, 11)
        for group in ("active", "idle"):
            commit(scene.clusters.east, scene.group(group), scene.topic("plain"), 0, 2_000)
        checkpoints = scene.checkpoints()
        checkpoints.source.checkpoint()
        checkpoints.target.sync()
        newest = scene.newest()
        assert newest["idle", "plain", 0]["synced"]
        assert (newest["active", "plain", 0]["synced"], newest["active", "plain", 0]["reason"]) == (
            False,
            ACTIVE,
        )
        for force in (False, True):
            moved = scene.move("active", "idle", force=force)
            assert not moved["complete"] and len(moved["left"]) == 1 and ACTIVE in moved["left"][0]
    finally:
        consumer.close()
    assert scene.at_target("idle", "plain") == (2_000, "")
    assert scene.at_target("active", "plain") is None
    scene.checkpoints().target.sync()
    assert scene.at_target("active", "plain") == (2_000, ""), "its members left"


@pytest.mark.wide("simulation/test_group_schedules.py::test_no_schedule_breaks_a_law_of_groups")
def test_a_kill_between_checkpoint_and_sync_is_made_up_for(scene: Scene) -> None:
    scene.checkpoints().source.checkpoint()  # of groups that other tests left
    commit(scene.clusters.east, scene.group("killed"), scene.topic("plain"), 0, 77, "k")
    (row,) = scene.checkpoints().source.checkpoint()
    assert isinstance(row, Checkpoint) and not row.synced
    assert scene.at_target("killed", "plain") is None
    later = scene.checkpoints()  # knows nothing but the lake
    assert later.source.checkpoint() == []
    later.target.sync()
    assert scene.at_target("killed", "plain") == (77, "k")
    scene.connections.admin("east").client.delete_consumer_groups([scene.group("killed")])[
        scene.group("killed")
    ].result(20)
    fresh = scene.checkpoints()
    assert [item.reason for item in fresh.source.checkpoint()] == [GONE]
    assert fresh.target.sync() == []


def test_a_failover_that_was_killed_half_way_ends_in_the_same_state(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [f"half{number}" for number in range(3)]
    for number, group in enumerate(groups):
        commit(scene.clusters.east, scene.group(group), scene.topic("plain"), 0, 500 + number)
    tried = scene.move(*groups, dry_run=True)
    assert [row["done"] for row in tried["groups"]] == ["would move"] * 3
    assert [scene.at_target(group, "plain") for group in groups] == [None] * 3

    class Killed(BaseException):
        """Nobody catches it, as nobody catches a kill."""

    def die(point: str) -> None:
        if point == "group-moved":
            raise Killed

    monkeypatch.setattr(failpoints, "reached", die)
    with pytest.raises(Killed):
        scene.move(*groups)
    monkeypatch.undo()
    assert [scene.at_target(group, "plain") for group in groups].count(None) == 2
    moved = scene.move(*groups)
    assert moved["complete"] and sorted(row["done"] for row in moved["groups"]) == [
        "moved",
        "moved",
        "there",
    ]
    assert [scene.at_target(group, "plain") for group in groups] == [
        (500 + number, "") for number in range(3)
    ]


@pytest.mark.wide("test_groups_read_after_failover_exactly_what_they_had_not")
def test_a_planned_migration_catches_up_first(scene: Scene) -> None:
    plain = scene.topic("plain")
    write(scene.clusters.east, plain, numbered(60, start=RECORDS))
    commit(scene.clusters.east, scene.group("planned"), plain, 0, RECORDS + 20)
    early = scene.move("planned", dry_run=True)
    assert not early["complete"] and early["groups"][0]["read_again_at_most"] == 20
    moved = scene.move("planned", drain=True)
    assert moved["complete"], moved["left"]
    assert [(item["complete"], item["records"]) for item in moved["drained"]] == [(True, 60)]
    got = unread(scene.clusters.west, scene.group("planned"), f"east.{plain}")
    assert got == [record.value for record in numbered(40, start=RECORDS + 20)]
    end = read_topic(scene.clusters.west, f"east.{plain}")[0][-1].offset + 1
    assert scene.newest()["held", "plain", 0]["target_position"] == end


@pytest.mark.wide(
    "simulation/test_failover_schedules.py::test_no_schedule_moves_a_group_past_what_it_has_not_read"
)
def test_a_source_that_is_gone_is_stood_for_by_the_last_checkpoints(scene: Scene) -> None:
    checkpoints = scene.checkpoints()
    commit(scene.clusters.east, scene.group("lost"), scene.topic("plain"), 0, 4_000)
    checkpoints.source.checkpoint()
    document = yaml.safe_load(scene.topology.read_text(encoding="utf-8"))
    document["clusters"]["east"]["bootstrap_servers"] = "127.0.0.1:1"
    path = scene.topology.with_name("lost.yml")
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    command = ["-c", str(path), "failover", "--flow", FLOW, "--json"]
    result = CliRunner().invoke(app, [*command, "--group", scene.group("lost")])
    answer = json.loads(result.stdout)
    assert result.exit_code == 0 and answer["complete"], answer
    assert "east" in answer["origin_unreachable"]
    (row,) = answer["groups"]
    assert (row["to_position"], row["done"]) == (4_000, "moved")
    assert row["read_again_at_most"] >= RECORDS - 4_000 and row["seen_at"] is not None
    assert (answer["staged_only"], answer["never_staged"]) == ([], [])
    assert scene.at_target("lost", "plain") == (4_000, "")


def test_divergence_lists_what_never_reached_the_target(scene: Scene) -> None:
    place = {"source_cluster": "east", "topic": scene.topic("void"), "partition": 0}
    append(scene.lake, "records", [{**place, "offset": offset} for offset in range(5, 12)])
    result = CliRunner().invoke(
        app, ["-c", str(scene.topology), "divergence", "--flow", FLOW, "--json"]
    )
    assert result.exit_code == 1
    assert json.loads(result.stdout)["staged_only"] == [
        {
            "topic": scene.topic("void"),
            "partition": 0,
            "first_offset": 5,
            "last_offset": 11,
            "record_count": 7,
        }
    ]
    rows = now_of(scene.lake).rows(
        f"SELECT topic, record_count FROM divergence WHERE flow = '{FLOW}'"
    )
    assert rows == [{"topic": scene.topic("void"), "record_count": 7}]


@pytest.mark.wide(
    "test_a_group_that_reads_uncommitted_records_is_named_while_that_shows",
    "integration/test_readable_positions.py::test_an_empty_topic_has_a_position_too",
)
def test_commands_say_what_is_and_refuse_what_is_wrong(scene: Scene) -> None:
    commit(scene.clusters.east, scene.group("shown"), scene.topic("plain"), 0, 2_000)
    checkpoints = scene.checkpoints()
    checkpoints.source.checkpoint()
    checkpoints.target.sync()
    result = CliRunner().invoke(
        app, ["-c", str(scene.topology), "groups", "--flow", FLOW, "--json"]
    )
    assert result.exit_code == 0, result.output
    (flow,) = json.loads(result.stdout)["flows"]
    rows = {(row["group"], row["topic"], row["partition"]): row for row in flow["groups"]}
    row = rows[scene.group("shown"), scene.topic("plain"), 0]
    end = read_topic(scene.clusters.east, scene.topic("plain"))[0][-1].offset + 1
    assert (row["source_position"], row["target_position"], row["translated_position"]) == (
        2_000,
        2_000,
        2_000,
    )
    assert (row["source_state"], row["target_state"], row["exact"], row["synced"]) == (
        "EMPTY",
        "EMPTY",
        True,
        True,
    )
    assert row["source_lag"] == end - 2_000 <= row["target_lag"]
    held = rows[scene.group("held"), scene.topic("plain"), 0]
    assert (held["exact"], held["read_again_at_most"]) == (False, 0) and f"ends at {end}" in held[
        "reason"
    ]
    shown = CliRunner().invoke(
        app, ["-c", str(scene.topology), "failover", "--flow", FLOW, "--all-groups", "--dry-run"]
    )
    assert shown.exit_code == 1 and "left:" in shown.output
    for group, told in (
        ("nobody", "not known"),
        ("mirrorlake-0a1b2c3d-west->east", "flow of mirrorlake"),
    ):
        command = ["-c", str(scene.topology), "failover", "--flow", FLOW, "--group", group]
        refused = CliRunner().invoke(app, command)
        assert isinstance(refused.exception, InputError) and told in str(refused.exception)


def test_a_group_that_reads_uncommitted_records_is_named_while_that_shows(scene: Scene) -> None:
    """Only while a transaction is open: then its position lies behind what readers of committed
    records get."""
    topic, group = f"east.{scene.topic('plain')}", scene.group("hasty")
    commit(scene.clusters.east, group, scene.topic("plain"), 1, 0)
    producer = transactional_producer(scene.clusters.west)
    producer.begin_transaction()
    producer.produce(topic, b"not committed", partition=1)
    producer.flush(20)
    commit(scene.clusters.west, group, topic, 1, end_of(scene.clusters.west, topic, 1))
    command = ["-c", str(scene.topology), "groups", "--group", group, "--engine", "duckdb"]
    try:
        said = CliRunner().invoke(app, command).output
    finally:
        producer.abort_transaction(20)
    assert f"group {group} has read records at the target that are not committed" in said
    assert "not committed" not in CliRunner().invoke(app, command).output, (
        "behind the marker it cannot be told"
    )


def test_the_broker_lists_groups_of_the_new_protocol(scene: Scene) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": scene.clusters.east,
            "group.id": scene.group("kip848"),
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([scene.topic("plain")])
        messages = consumer.consume(10, timeout=60)
        assert messages
        last = max(message.offset() for message in messages if message.partition() == 0)
        consumer.commit(
            offsets=[TopicPartition(scene.topic("plain"), 0, last + 1)], asynchronous=False
        )
        groups = scene.connections.groups("east")
        assert groups.listing().states[scene.group("kip848")] not in ("EMPTY", "DEAD")
        positions = groups.positions([scene.group("kip848")]).positions
        assert positions == {
            scene.group("kip848"): {(scene.topic("plain"), 0): Committed(last + 1)}
        }
        scene.checkpoints().source.checkpoint()
        assert scene.newest()["kip848", "plain", 0]["target_position"] == last + 1
    finally:
        consumer.close()


@pytest.mark.slow
def test_positions_in_a_topic_that_two_flows_share(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    """Identity names, both ways: each cluster has the records in its own order."""
    settings = {
        "topics": [topic_name],
        "groups": [f"{topic_name}.*"],
        "policy": "identity",
        "provenance": "headers",
        **GROUPS,
    }
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings)
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["flows"]["west->east"] = {**QUIET, **settings}
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    for bootstrap, start, count in ((clusters.east, 0, 30), (clusters.west, 1_000, 20)):
        create_topic(bootstrap, topic_name)
        write(bootstrap, topic_name, numbered(count, start=start))
    replicate_once(spark, topology)
    run = replicate_once(spark, topology)
    east, west = (
        read_topic(bootstrap, topic_name)[0] for bootstrap in (clusters.east, clusters.west)
    )
    assert len(east) == len(west) == 50
    for read in (10, 30, 35, 50):
        group = f"{topic_name}-{read}"
        commit(
            clusters.east,
            group,
            topic_name,
            0,
            east[read].offset if read < 50 else east[-1].offset + 1,
        )
        connections = Connections(load_topology(topology))
        direction = Direction(connections.topology.flow(FLOW))
        found = move_groups(
            Deployment.opened(run.lake, connections), direction, MoveOptions((group,), drain=False)
        )
        assert found["complete"], found["left"]
        seen = {record.value for record in east[:read]}
        got = unread(clusters.west, group, topic_name)
        again = [value for value in got if value in seen]
        assert set(got) | seen == {record.value for record in west}, f"{read}: records were skipped"
        assert not got or got[0] not in seen, f"{read}: begins with a record that was read"
        assert len(again) <= found["groups"][0]["read_again_at_most"]
