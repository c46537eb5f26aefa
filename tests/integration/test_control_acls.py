"""ACLs on real brokers with Kafka's StandardAuthorizer, and on brokers that have none."""

import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.config.topology import load_topology
from mirrorlake.control import acl_sync
from mirrorlake.control.acl_plan import owned_acls
from mirrorlake.control.acl_reports import LEFT
from mirrorlake.control.acl_sync import AclSync
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.kafka.admin_acls import create_acls
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.changes import ChangeLog, MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog, WrittenChanges
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.states import states_as_of
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.offsets.progress import NOTHING_MAPPED
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.run.control_loop import ControlLoop
from mirrorlake.run.plan import make_plan
from mirrorlake.run.resolve import Wanted, resolve
from tests.support.acls import acl
from tests.support.calls import calls_of
from tests.support.clusters import ClusterPair
from tests.support.control import AUTHORIZER, acls_of, add_acls, make_sync, own_configs, remove_acls
from tests.support.kafka import NewRecord, create_topic, delete_topic, topics_of, write
from tests.support.lake_rows import now_of
from tests.support.replication import FLOW, lake_of, replicate_once, write_topology
from tests.support.waiting import until


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterPair]:
    """Two clusters with an authorizer."""
    embedded = start_clusters(
        ["east", "west"], tmp_path_factory.mktemp("guarded"), properties=AUTHORIZER, heap="256m"
    )
    try:
        yield ClusterPair(
            embedded["east"].bootstrap_servers, embedded["west"].bootstrap_servers, embedded
        )
    finally:
        stop_clusters(embedded)


class Bench:
    """ACL control over the topics whose names begin with a text, on two clusters."""

    def __init__(
        self, directory: Path, clusters: ClusterPair, topic: str, log: ChangeLog, **settings: object
    ) -> None:
        self.clusters, self.topic, self.log = clusters, topic, log
        flow = {"topics": [re.escape(topic).replace(r"\-", "-") + ".*"], **settings}
        self.file = write_topology(directory, clusters.east, clusters.west, flow)
        self.acls = make_sync(AclSync, self.file, log)

    def sync(self) -> list[tuple[str, str | None]]:
        """Sync and wait until the target shows it; returns outcome and error of every row."""
        rows = self.acls.sync()
        until(self.acls.plan, gives=[])
        return [(row.outcome, row.error) for row in rows]

    def on_target(self) -> set[Acl]:
        return acls_of(self.clusters.west, self.topic)


def test_acls_follow_by_mirror_makers_rule(
    tmp_path: Path, guarded: ClusterPair, topic_name: str
) -> None:
    bench = Bench(tmp_path, guarded, topic_name, MemoryLog(), topics_exclude=[".*-excluded"])
    create_topic(guarded.east, topic_name)
    create_topic(guarded.east, f"{topic_name}-eu")
    create_topic(guarded.east, f"{topic_name}-excluded")
    wild = acl("*", "DESCRIBE_CONFIGS", principal="User:wild")
    add_acls(
        guarded.east,
        acl(topic_name, principal="User:CN=ann,OU=a,O=b", host="10.1.2.3"),
        acl(topic_name, "WRITE", principal="User:bob"),
        acl(topic_name, "ALL", principal="User:carl"),
        acl(topic_name, "WRITE", "DENY", principal="User:dora"),
        acl(f"{topic_name}-e", pattern="PREFIXED", principal="User:eve"),
        wild,
    )
    try:
        bench.sync()
    finally:
        remove_acls(guarded.east, wild)
    mirror = f"east.{topic_name}"
    assert bench.on_target() == {
        acl(mirror, principal="User:CN=ann,OU=a,O=b", host="10.1.2.3"),
        acl(mirror, "READ", principal="User:carl"),
        acl(mirror, "WRITE", "DENY", principal="User:dora"),
        acl(f"{mirror}-e", pattern="PREFIXED", principal="User:eve"),
    }
    all_mirrors = acl("east.", "DESCRIBE_CONFIGS", pattern="PREFIXED", principal="User:wild")
    assert all_mirrors in acls_of(guarded.west)
    bench.sync()  # the source has it no more
    assert all_mirrors not in acls_of(guarded.west)
    # the rights are there before the topic is
    assert not any(mirror in name for name in topics_of(guarded.west))


def test_no_right_at_the_target_is_wider_than_at_the_source(
    tmp_path: Path, guarded: ClusterPair, topic_name: str
) -> None:
    """A prefix of the source's stays one only while nothing but mirrors lies below it at the
    target."""
    bench = Bench(tmp_path, guarded, topic_name, MemoryLog())
    create_topic(guarded.east, topic_name)
    narrow, everything = (
        acl(topic_name, pattern="PREFIXED", principal="User:app"),
        acl("*", principal="User:all"),
    )
    add_acls(guarded.east, narrow, everything)
    mirror, own = f"east.{topic_name}", f"east.{topic_name}-private"
    try:
        bench.sync()
        assert bench.on_target() == {acl(mirror, pattern="PREFIXED", principal="User:app")}
        assert acl("east.", pattern="PREFIXED", principal="User:all") in acls_of(guarded.west)
        create_topic(guarded.west, own)  # the target's own
        bench.sync()
        assert bench.on_target() == {
            acl(mirror, principal="User:app"),
            acl(mirror, principal="User:all"),
        }
        wide = {each.principal for each in acls_of(guarded.west) if each.pattern == "PREFIXED"}
        assert not wide & {"User:app", "User:all"}
        delete_topic(guarded.west, own)
        until(lambda: own not in topics_of(guarded.west))
        bench.sync()
        assert bench.on_target() == {acl(mirror, pattern="PREFIXED", principal="User:app")}
    finally:
        remove_acls(guarded.east, narrow, everything)
        bench.sync()


def test_removal_takes_away_ours_and_nothing_made_by_hand(
    tmp_path: Path, guarded: ClusterPair, topic_name: str
) -> None:
    bench = Bench(tmp_path, guarded, topic_name, MemoryLog())
    mirror = f"east.{topic_name}"
    create_topic(guarded.east, topic_name)
    both = acl(topic_name, principal="User:both")
    ours = acl(topic_name, pattern="PREFIXED", principal="User:ours")
    add_acls(guarded.east, both, ours)
    by_hand = {acl(mirror, principal="User:both"), acl(mirror, "ALTER", principal="User:hand")}
    add_acls(guarded.west, *by_hand)
    assert bench.sync() == [("done", None)]
    assert bench.on_target() == by_hand | {acl(mirror, pattern="PREFIXED", principal="User:ours")}
    remove_acls(guarded.east, both, ours)
    (dry,) = bench.acls.plan()
    assert (dry.action, dry.acl) == (
        "delete",
        acl(mirror, pattern="PREFIXED", principal="User:ours"),
    )
    assert len(bench.on_target()) == 3  # a dry run changes nothing
    assert bench.sync() == [("done", None)]
    assert bench.on_target() == by_hand
    assert bench.sync() == []


def test_rights_on_the_mirror_of_a_deleted_topic_stay_until_the_source_takes_them_back(
    tmp_path: Path, guarded: ClusterPair, topic_name: str
) -> None:
    bench = Bench(tmp_path, guarded, topic_name, MemoryLog())
    prefix = acl(topic_name, pattern="PREFIXED")
    create_topic(guarded.east, topic_name)
    add_acls(guarded.east, prefix)
    bench.sync()
    admin = AdminClient({"bootstrap.servers": guarded.east})
    admin.delete_topics([topic_name])[topic_name].result(20)
    until(lambda: topic_name not in topics_of(guarded.east))
    assert bench.sync() == [] and bench.on_target() == {
        acl(f"east.{topic_name}", pattern="PREFIXED")
    }
    remove_acls(guarded.east, prefix)
    assert bench.sync() == [("done", None)] and bench.on_target() == set()


def test_nothing_is_sent_when_nothing_differs(
    tmp_path: Path, guarded: ClusterPair, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog()
    bench = Bench(tmp_path, guarded, topic_name, log)
    create_topic(guarded.east, topic_name)
    add_acls(guarded.east, acl(topic_name))
    client = bench.acls._target.client
    created, deleted = (
        calls_of(client, call, len, monkeypatch.setattr) for call in ("create_acls", "delete_acls")
    )
    for _ in range(4):
        bench.sync()
    assert (created, deleted) == ([1], []) and [row.outcome for _, row in log.rows] == [
        "begun",
        "done",
    ]


@pytest.mark.wide("test_an_acl_that_was_made_just_before_a_kill_is_ours")
def test_what_is_ours_is_known_after_a_restart(
    tmp_path: Path, guarded: ClusterPair, topic_name: str, spark: SparkSession
) -> None:
    """The lake remembers: another process takes away what the first one made, and only that."""
    topology = write_topology(tmp_path, guarded.east, guarded.west, {"topics": [topic_name]})
    lake = lake_of(spark, topology)
    mirror, first = f"east.{topic_name}", acl(topic_name)
    create_topic(guarded.east, topic_name)
    add_acls(guarded.east, first)
    add_acls(guarded.west, acl(mirror, principal="User:hand"))
    bench = Bench(tmp_path, guarded, topic_name, EventLog(lake))
    bench.sync()
    assert acl(mirror) in bench.on_target()
    remove_acls(guarded.east, first)
    later = Bench(tmp_path, guarded, topic_name, EventLog(lake))
    assert later.sync() == [("done", None)]
    assert later.on_target() == {acl(mirror, principal="User:hand")}
    rows = now_of(lake).rows("SELECT * FROM changes WHERE kind = 'acl' ORDER BY at")
    assert [
        (row["flow"], row["resource"], row["before"], row["after"], row["outcome"]) for row in rows
    ] == [
        (FLOW, mirror, None, acl(mirror).text(), "begun"),
        (FLOW, mirror, None, acl(mirror).text(), "done"),
        (FLOW, mirror, acl(mirror).text(), None, "done"),
    ]


def test_identity_in_both_directions_does_not_keep_an_acl_alive(
    tmp_path: Path, guarded: ClusterPair, topic_name: str
) -> None:
    """What one flow made is nothing that the opposite flow would take for the other side's own."""
    log = MemoryLog()
    there = Bench(tmp_path, guarded, topic_name, log, policy="identity")
    document = yaml.safe_load(there.file.read_text(encoding="utf-8"))
    document["flows"]["west->east"] = document["flows"][FLOW]
    there.file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    there.acls, back = (
        make_sync(AclSync, there.file, log),
        make_sync(AclSync, there.file, log, "west->east"),
    )
    for address in (guarded.east, guarded.west):
        create_topic(address, topic_name)
    add_acls(guarded.east, acl(topic_name))
    there.sync()
    assert back.sync() == []
    remove_acls(guarded.east, acl(topic_name))
    assert back.sync() == []  # the west still has it, but only because the east had
    there.sync()
    assert there.on_target() == set() == acls_of(guarded.east, topic_name)


def test_opposite_flows_in_two_processes_know_of_each_other_at_each_turn(
    tmp_path: Path, guarded: ClusterPair, topic_name: str, spark: SparkSession
) -> None:
    """Each process has read the tables before the other made an ACL, and still does not take it for
    somebody's own."""
    topology = write_topology(
        tmp_path, guarded.east, guarded.west, {"topics": [topic_name], "policy": "identity"}
    )
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["flows"]["west->east"] = document["flows"][FLOW]
    topology.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    lake = lake_of(spark, topology)
    there = make_sync(AclSync, topology, EventLog(lake))
    back = make_sync(AclSync, topology, EventLog(lake), "west->east")
    for address in (guarded.east, guarded.west):
        create_topic(address, topic_name)
    assert there.sync() == [] == back.sync()
    add_acls(guarded.east, acl(topic_name))
    assert [row.outcome for row in there.sync()] == ["done"]
    until(lambda: acls_of(guarded.west, topic_name), gives={acl(topic_name)})
    assert back.sync() == []
    remove_acls(guarded.east, acl(topic_name))
    assert back.sync() == [], "revoked in the east: the west has it only because the east had"
    there.sync()
    until(
        lambda: acls_of(guarded.east, topic_name) | acls_of(guarded.west, topic_name), gives=set()
    )
    assert back.sync() == []


def test_an_acl_that_was_made_just_before_a_kill_is_ours(
    tmp_path: Path,
    guarded: ClusterPair,
    topic_name: str,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topology = write_topology(tmp_path, guarded.east, guarded.west, {"topics": [topic_name]})
    lake = lake_of(spark, topology)
    create_topic(guarded.east, topic_name)
    add_acls(guarded.east, acl(topic_name))

    def make_and_die(*arguments: Any) -> None:
        create_acls(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(acl_sync, "create_acls", make_and_die)
        with pytest.raises(KeyboardInterrupt):
            make_sync(AclSync, topology, EventLog(lake)).sync()
    until(lambda: acls_of(guarded.west, topic_name), gives={acl(f"east.{topic_name}")})
    remove_acls(guarded.east, acl(topic_name))
    make_sync(AclSync, topology, EventLog(lake)).sync()
    until(lambda: acls_of(guarded.west, topic_name), gives=set())


@pytest.mark.parametrize("choice", ["revoke", "keep"])
def test_readers_of_mirrors_keep_their_rights_when_the_policy_changes(
    tmp_path: Path, guarded: ClusterPair, topic_name: str, spark: SparkSession, choice: str
) -> None:
    """`default` edited to `identity`: the ACLs of before are left alone and named, until an
    operator decides."""
    create_topic(guarded.east, topic_name)
    add_acls(guarded.east, acl(topic_name))
    topology = write_topology(tmp_path, guarded.east, guarded.west, {})
    lake = lake_of(spark, topology)
    event_log = EventLog(lake)
    Bench(tmp_path, guarded, topic_name, event_log).sync()
    before, after = acl(f"east.{topic_name}"), acl(topic_name)
    edited = Bench(tmp_path, guarded, topic_name, event_log, policy="identity")
    kept_alike = SimpleNamespace(sync_acls=edited.acls.sync)
    targets = SimpleNamespace(acls=edited.acls, kept_alike=kept_alike)
    worker = SimpleNamespace(targets=targets)
    control: Any = SimpleNamespace(
        flow=edited.acls.flow, _event_log=event_log, _acls_left=None, _flow_worker=worker
    )
    for _ in range(2):
        ControlLoop._sync_acls(control)
    until(edited.on_target, gives={before, after})
    assert edited.acls.left == {before: "default"}
    connections = Connections(load_topology(edited.file))
    log = WrittenChanges(lake.reader)
    (planned,) = make_plan(connections, connections.topology.active_flows(), log)["flows"]
    assert [(left["name"], left["policy"]) for left in planned["acls_left"]] == [
        (before.name, "default")
    ]
    (told,) = resolve(Deployment.opened(lake, connections), Wanted(kind=LEFT), choice).decided
    assert before.name in told["detail"] and "mirrorlake resolve" in told["detail"]
    until(edited.on_target, gives={after} if choice == "revoke" else {before, after})
    ControlLoop._sync_acls(control)
    assert edited.acls.left == {} and now_of(lake).table_rows("open_incidents") == []
    assert edited.acls.sync() == [] and (before in edited.on_target()) is (choice == "keep")


@pytest.mark.wide("test_a_topic_is_made_with_its_acls_and_configs_before_its_first_record")
@pytest.mark.parametrize("synced", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_lake_knows_the_acls_of_the_source_as_they_were(
    tmp_path: Path, guarded: ClusterPair, topic_name: str, spark: SparkSession, synced: bool
) -> None:
    """Whether or not the flow keeps them alike at its target; and nothing is noted twice."""
    create_topic(guarded.east, topic_name, 2, **{"retention.ms": "86400000"})
    wide, literal = (
        acl(topic_name[:-1], "WRITE", pattern="PREFIXED"),
        acl(topic_name, "ALL", principal="User:bob"),
    )
    add_acls(guarded.east, wide, literal)
    settings = {"sync_topic_acls_enabled": synced, "sync_topic_configs_enabled": synced}
    topology = write_topology(
        tmp_path, guarded.east, guarded.west, {"topics": [topic_name], **settings}
    )
    write(guarded.east, topic_name, [NewRecord(b"1")])
    replicate_once(spark, topology)
    lake = lake_of(spark, topology)

    def known(until_ms: int = 2**62) -> set[Acl]:
        state = states_as_of(now_of(lake), "east", until_ms)[topic_name]
        assert state.partitions == 2 and state.configs == {"retention.ms": "86400000"}
        return {acl for acl in state.acls or () if acl.name != "*"}

    assert known() == {wide, literal}
    before = time.time_ns() // 1_000_000
    noted = now_of(lake).table_rows("states")
    replicate_once(spark, topology)
    assert now_of(lake).table_rows("states") == noted
    remove_acls(guarded.east, literal)
    replicate_once(spark, topology)
    assert known() == {wide} and known(before) == {wide, literal}


def no_session() -> SparkSession:
    raise AssertionError("nothing here needs Spark")


def open_path_lake(directory: Path) -> Lake:
    return open_lake(no_session, Location(path=str(directory / "lake")), directory)


def flow_topics(topology: Path, lake: Lake, event_log: EventLog) -> TargetTopics:
    loaded = load_topology(topology)
    return TargetTopics(loaded.flow(FLOW), Deployment(lake, Connections(loaded), event_log))


def test_a_topic_is_made_with_its_acls_and_configs_before_its_first_record(
    tmp_path: Path, guarded: ClusterPair, topic_name: str
) -> None:
    """Also one that the source has no more, by what the lake knows of it."""
    lake = open_path_lake(tmp_path)
    log, gone = EventLog(lake), f"{topic_name}-gone"
    topology = write_topology(tmp_path, guarded.east, guarded.west, {"topics": [f"{topic_name}.*"]})
    create_topic(guarded.east, topic_name, retention_ms="5000000")
    add_acls(
        guarded.east, acl(topic_name, permission="DENY"), acl(topic_name, principal="User:bob")
    )
    topics = flow_topics(topology, lake, log)
    topics.refresh()
    mirror = f"east.{topic_name}"
    until(lambda: mirror in topics_of(guarded.west))
    assert acls_of(guarded.west, mirror) == {
        acl(mirror, permission="DENY"),
        acl(mirror, principal="User:bob"),
    }
    assert own_configs(guarded.west, mirror)["retention.ms"] == "5000000"
    stated = TopicState(
        1, 1, {"retention.ms": "6000000"}, "id", (acl(gone[:-1], "ALL", pattern="PREFIXED"),)
    )
    log.states.note("east", {gone: stated})
    topics.ensure([PartitionPlan(gone, 0, f"east.{gone}", floor=NOTHING_MAPPED, first=0, last=0)])
    assert acls_of(guarded.west, f"east.{gone}") == {acl(f"east.{gone}")}
    assert own_configs(guarded.west, f"east.{gone}")["retention.ms"] == "6000000"


@pytest.mark.wide("test_a_topic_is_made_with_its_acls_and_configs_before_its_first_record")
@pytest.mark.parametrize("describes", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_topic_whose_acls_the_target_refuses_is_not_made(
    tmp_path: Path, guarded: ClusterPair, topic_name: str, describes: bool
) -> None:
    """We may not make them there, or not even see them."""
    directory = tmp_path / "closed"
    closed = EmbeddedCluster(
        "closed", directory, properties={**AUTHORIZER, "super.users": "User:nobody"}, heap="256m"
    )
    with closed:
        lake = open_path_lake(tmp_path)
        create_topic(guarded.east, topic_name)
        create_topic(guarded.east, f"{topic_name}-open")
        add_acls(guarded.east, acl(topic_name, permission="DENY"))
        flow = {"topics": [f"{topic_name}.*"]}
        topology = write_topology(tmp_path, guarded.east, closed.bootstrap_servers, flow)
        rights = [
            AclOperation.CLUSTER_ACTION,
            AclOperation.CREATE,
            *[AclOperation.DESCRIBE] * describes,
        ]
        _leave_us_only(closed.bootstrap_servers, *rights)
        topics = flow_topics(topology, lake, EventLog(lake))
        for _ in range(2):
            topics.refresh()
            assert f"east.{topic_name}" not in topics_of(closed.bootstrap_servers)
            assert list(topics.closed()) == [topic_name]
        (told,) = now_of(lake).table_rows("open_incidents")
        assert told["kind"] == "topic_refused" and "DENY READ for User:ann (" in told["detail"]
        assert ("ALTER on cluster west" in told["detail"]) is describes


@pytest.mark.wide(
    "integration/test_control_configs.py::test_a_refused_change_is_told_once_and_stops_no_other"
)
@pytest.mark.parametrize("without", ["both", "target"])
def test_a_cluster_without_an_authorizer_is_told_once(
    tmp_path: Path,
    guarded: ClusterPair,
    clusters: ClusterPair,
    topic_name: str,
    without: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = guarded.east if without == "target" else clusters.east
    bench = Bench(tmp_path, ClusterPair(source, clusters.west, None), topic_name, MemoryLog())
    create_topic(source, topic_name)
    with caplog.at_level(logging.INFO, "mirrorlake.control.acl_sync"):
        rows = bench.acls.sync()
        assert bench.acls.sync() == [] and bench.acls.sync() == [] and bench.acls.plan() == []
    wanted = ["west"] if without == "target" else ["east", "west"]
    assert [row.resource for row in rows] == [f"cluster {alias}" for alias in wanted]
    assert all(row.outcome == "skipped" and "no authorizer" in str(row.error) for row in rows)
    assert bench.acls.refused == []
    said = [record for record in caplog.records if "no authorizer" in record.message]
    assert [record.levelname for record in said] == ["INFO"] * len(wanted)


@pytest.mark.wide("test_removal_takes_away_ours_and_nothing_made_by_hand")
def test_a_cluster_that_does_not_let_us_ask_any_more_takes_no_rights_away(
    tmp_path: Path, guarded: ClusterPair, topic_name: str
) -> None:
    """Once anybody has rights on the cluster, nobody else has: we may not describe its ACLs any
    more."""
    directory = tmp_path / "closed"
    closed = EmbeddedCluster(
        "closed", directory, properties={**AUTHORIZER, "super.users": "User:nobody"}, heap="256m"
    )
    with closed:
        bench = Bench(
            tmp_path,
            ClusterPair(closed.bootstrap_servers, guarded.west, None),
            topic_name,
            MemoryLog(),
        )
        create_topic(closed.bootstrap_servers, topic_name)
        add_acls(
            closed.bootstrap_servers,
            acl(topic_name),
            acl(topic_name, "DESCRIBE", principal="User:ANONYMOUS"),
        )
        assert bench.sync() == [("done", None)] * 2
        _leave_us_only(closed.bootstrap_servers, AclOperation.CLUSTER_ACTION)
        assert len(bench.acls.sync()) == 1 and bench.acls.sync() == []
        row = bench.log.rows[-1][1]
        assert (row.resource, row.outcome) == ("cluster east", "refused")
        assert "DESCRIBE on the cluster is not allowed" in str(row.error)
        assert bench.acls.refused == [row.error]
        assert acl(f"east.{topic_name}") in bench.on_target() and len(bench.on_target()) == 2


@pytest.mark.wide(
    "integration/test_control_configs.py::test_a_refused_change_is_told_once_and_stops_no_other"
)
def test_acls_that_the_target_refuses_are_told_once(
    tmp_path: Path, guarded: ClusterPair, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """We may see the ACLs of the target, but not change them."""
    directory = tmp_path / "closed"
    closed = EmbeddedCluster(
        "closed", directory, properties={**AUTHORIZER, "super.users": "User:nobody"}, heap="256m"
    )
    with closed:
        bench = Bench(
            tmp_path,
            ClusterPair(guarded.east, closed.bootstrap_servers, None),
            topic_name,
            MemoryLog(),
        )
        create_topic(guarded.east, topic_name)
        add_acls(guarded.east, acl(topic_name), acl(topic_name, principal="User:bob"))
        _leave_us_only(closed.bootstrap_servers, AclOperation.CLUSTER_ACTION, AclOperation.DESCRIBE)
        rows = bench.acls.sync()
        assert [(row.resource, row.outcome) for row in rows] == [
            (f"east.{topic_name}", "refused")
        ] * 2
        assert [row.error for row in rows] == ["ALTER on cluster west is not allowed"] * 2
        # not asked again so soon
        monkeypatch.setattr(bench.acls._target.client, "create_acls", None)
        assert bench.acls.sync() == [] and len(bench.acls.plan()) == 2
        assert bench.acls.refused == ["ALTER on cluster west is not allowed"] * 2
        assert owned_acls(bench.log.history(FLOW, "acl")) == {}


def _leave_us_only(bootstrap: str, *operations: AclOperation) -> None:
    """Give us these operations on a cluster, and so, by naming somebody, take all others; waits
    until that holds."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    where = (
        ResourceType.BROKER,
        "kafka-cluster",
        ResourcePatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
    )
    bindings = [AclBinding(*where, operation, AclPermissionType.ALLOW) for operation in operations]
    for future in admin.create_acls(bindings).values():
        future.result(20)

    def may() -> set[AclOperation]:
        cluster = admin.describe_cluster(include_authorized_operations=True).result(20)
        return set(cluster.authorized_operations or ()) & {
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
        }

    until(may, gives=set(operations) & {AclOperation.DESCRIBE})
