"""A mirror keeps its configs while an operator has to decide about its topic."""

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.checks import preflight
from mirrorlake.config.topology import load_topology
from mirrorlake.control import config_sync
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.errors import ReplicationError, TargetRecreated
from mirrorlake.kafka.admin_configs import Described
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import ConfigValue
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.incidents import IncidentKey, Incidents
from mirrorlake.lake.targets import note_targets
from mirrorlake.landing.generations import begin_generations
from mirrorlake.landing.source_comparison import TopicGeneration
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.run import plan
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.lake_rows import FLOW, no_session, opened, write_file

NAMES = ("fine", "made")
UNKNOWN = "cluster east does not say whether topic made is the one that was mirrored"


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Target topics whose configs are changed: at the source all are kept for an hour."""
    found: list[str] = []

    def described(cluster: MemoryCluster, topics: Iterable[str]) -> Described:
        hour = ConfigValue("3600000", "topic")
        configs = {"retention.ms": hour} if cluster.alias == "east" else {}
        return Described(dict.fromkeys(topics, configs), {})

    def alter(_cluster: MemoryCluster, changes: Iterable[Any]) -> dict[Any, None]:
        found.extend(change.target_topic for change in changes)
        return dict.fromkeys(changes)

    monkeypatch.setattr(config_sync, "describe_topic_configs", described)
    monkeypatch.setattr(config_sync, "alter_topic_configs", alter)
    return found


def topics_of(directory: Path) -> TargetTopics:
    topology = load_topology(write_file(directory, flows={FLOW: {"topics": [*NAMES]}}))
    clusters: Any = {
        "east": MemoryCluster("east", dict.fromkeys(NAMES, [0])),
        "west": MemoryCluster("west", {f"east.{name}": [0] for name in NAMES}),
    }
    event_log: Any = MemoryLog()
    nothing = lambda *_, **__: {}  # noqa: E731
    event_log.states = SimpleNamespace(note=nothing, note_acls=nothing, newest=nothing)
    event_log.incidents = Incidents(opened(no_session, directory / "mirrorlake.yml")[0])
    lake = MemoryLake()
    lake.answers["target_generations_of"] = []
    lake.answers["generations_of"] = []
    return TargetTopics(
        topology.flow(FLOW), Deployment(lake, Connections(topology, clusters), event_log)
    )


def hide(patch: pytest.MonkeyPatch, cluster: Any, topic: str) -> None:
    """Have a cluster not describe a topic."""
    asked = cluster._identities
    patch.setattr(
        cluster, "_identities", lambda names: asked([name for name in names if name != topic])
    )


def test_all_follow_where_nothing_waits(tmp_path: Path, changed: list[str]) -> None:
    topics_of(tmp_path).configs.sync()
    assert sorted(changed) == ["east.fine", "east.made"]


def test_a_topic_that_was_made_again_at_the_source(tmp_path: Path, changed: list[str]) -> None:
    topics = topics_of(tmp_path)
    incidents = topics._event_log.incidents
    incidents.open(FLOW, "topic_recreated", ReplicationError("it was", topic="made"))
    topics.configs.sync()
    assert changed == ["east.fine"]
    incidents.close(lambda _: True)
    topics.configs.sync()
    assert "east.made" in changed


def test_a_topic_that_was_made_again_and_nobody_has_heard_of_it(
    tmp_path: Path, changed: list[str]
) -> None:
    """As at a start, where landing finds it out beside this: what its mirror holds was deleted by
    the new topic's retention before the incident was there."""
    topics = topics_of(tmp_path)
    there, _ = topics._connections.admin("east").identities(NAMES)
    lake: Any = topics._lake
    lake.answers["generations_of"] = [
        {"topic": topic, "partition": None, "generation": 0, "topic_id": topic_id}
        for topic, topic_id in (("fine", there["fine"].topic_id), ("made", "the one before"))
    ]
    topics.configs.sync()
    assert changed == ["east.fine"]


def test_a_topic_of_which_the_source_does_not_say_whether_it_is_the_same_one(
    tmp_path: Path, changed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer counted as the same one."""
    topics = topics_of(tmp_path)
    source = topics._connections.admin("east")
    lake: Any = topics._lake
    lake.answers["generations_of"] = [
        {"topic": topic, "partition": None, "generation": 0, "topic_id": found.topic_id}
        for topic, found in source.identities(NAMES)[0].items()
    ]
    with monkeypatch.context() as patch:
        hide(patch, source, "made")
        for told in (1, 0):
            rows = [row for row in topics.configs.sync() if row.outcome == "refused"]
            assert [row.resource for row in rows] == ["east.made"] * told, "once"
            assert [UNKNOWN in why for why in topics.configs.undone] == [True]
        refusals = {change.topic: change.refusal for change in topics.configs.plan()}
        assert not refusals["fine"] and UNKNOWN in refusals["made"]
    assert "east.made" not in changed
    topics.configs.sync()
    assert "east.made" in changed and not topics.configs.undone


def test_plan_says_of_which_topics_that_is_not_known(
    tmp_path: Path, changed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"sync_topic_acls_enabled": False, "emit_heartbeats_enabled": False}
    flows = {FLOW: {"topics": [*NAMES], **settings}}
    lake, topology = opened(no_session, write_file(tmp_path, flows=flows))
    source = MemoryCluster("east", dict.fromkeys(NAMES, [0]))
    target = MemoryCluster("west", {f"east.{name}": [0] for name in NAMES})
    at_source, at_target = source.topic_ids(NAMES), target.topic_ids([*target.ends])
    noted = {name: TopicGeneration(0, topic_id) for name, topic_id in at_source.items()}
    begin_generations(lake, "east", noted)
    mirrors = {(name, f"east.{name}"): NotedTarget(0, at_target[f"east.{name}"]) for name in NAMES}
    note_targets(lake, FLOW, mirrors)
    for name in ("access_problems", "own_topic_problems"):
        monkeypatch.setattr(preflight, name, lambda *_: [])
    for name in ("limit_problems", "unseen_problems"):
        monkeypatch.setattr(plan, name, lambda *_, **__: [])
    monkeypatch.setattr(plan, "planned_groups", lambda *_: SimpleNamespace())
    monkeypatch.setattr(plan, "describe_topic_configs", config_sync.describe_topic_configs)
    hide(monkeypatch, source, "made")
    connections = Connections(topology, {"east": source, "west": target})
    (document,) = plan.make_plan(connections, [topology.flow(FLOW)], lake=lake.now)["flows"]
    refusals = {change["topic"]: change["refusal"] for change in document["configs"]}
    assert not refusals["fine"] and UNKNOWN in refusals["made"] and not changed


@pytest.mark.parametrize("restarted", [False, True])
def test_a_topic_that_was_made_again_at_the_source_and_stopped(
    tmp_path: Path, changed: list[str], restarted: bool
) -> None:
    """What its mirror holds would be deleted by the retention of a topic that it does not mirror
    any more."""
    topics = topics_of(tmp_path)
    incidents = topics._event_log.incidents
    incidents.open(FLOW, "topic_recreated", ReplicationError("it was", topic="made"))
    topics.configs.sync()
    incidents.settle_all([IncidentKey(FLOW, "topic_recreated", "made")], "stop")
    (topics_of(tmp_path) if restarted else topics).configs.sync()
    assert "east.made" not in changed


@pytest.mark.parametrize("stopped", [False, True])
def test_a_topic_that_was_made_again_at_the_target(
    tmp_path: Path, changed: list[str], stopped: bool
) -> None:
    topics = topics_of(tmp_path)
    if stopped:
        topics.generations.stopped = frozenset({"made"})
    else:
        topics.generations.waiting = {"made": TargetRecreated("it was", topic="made")}
    topics.configs.sync()
    assert changed == ["east.fine"]


def test_a_process_that_begins_knows_what_waited_before(tmp_path: Path, changed: list[str]) -> None:
    first = topics_of(tmp_path)
    error = ReplicationError("it was", topic="made")
    first._event_log.incidents.open(FLOW, "topic_recreated", error)
    topics_of(tmp_path).configs.sync()
    assert changed == ["east.fine"]
