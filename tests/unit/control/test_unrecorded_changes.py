"""What control did, or was refused, while the lake took no news is recorded by its next turn: it is
neither done nor refused a second time."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.control import acl_sync, config_sync
from mirrorlake.control.acl_sync import AclSync
from mirrorlake.control.config_sync import ConfigSync
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.kafka.admin_configs import Described
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import Acl, ConfigValue
from mirrorlake.lake.changes import Change, MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.acls import acl
from tests.support.lake_rows import FLOW, write_file


class Lake(MemoryLog):
    """Takes nothing that is done or refused while it is away."""

    is_away = True

    def record(self, flow: str, changes: Sequence[Change]) -> None:
        if self.is_away and any(change.outcome in ("done", "refused") for change in changes):
            raise OSError("the store is away")
        super().record(flow, changes)

    def recorded(self) -> list[tuple[str, str]]:
        return [(row.resource, row.outcome) for _, row in self.rows if row.outcome != "begun"]


def sync_of(kind: Any, directory: Path, log: Lake) -> Any:
    topology = load_topology(write_file(directory, flows={FLOW: {"topics": ["t", "u"]}}))
    clusters: Any = {
        "east": MemoryCluster("east", {"t": [0], "u": [0]}),
        "west": MemoryCluster("west", {"east.t": [0], "east.u": [0]}),
    }
    connections = Connections(topology, clusters)
    return kind(topology.flow(FLOW), connections, log, remote_topic=lambda topic: f"east.{topic}")


def twice(turn: Callable[[], object], log: Lake) -> None:
    with pytest.raises(OSError, match="away"):
        turn()
    log.is_away = False
    turn()


def test_configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hour = {"retention.ms": ConfigValue("3600000", "topic")}
    there: dict[str, dict[str, ConfigValue]] = {"east.t": {}, "east.u": {}}

    def described(_cluster: object, topics: Iterable[str]) -> Described:
        return Described({topic: there.get(topic, hour) for topic in topics}, {})

    def alter(_cluster: object, changes: Iterable[Any]) -> dict[Any, str | None]:
        there["east.t"] = hour
        return {
            change: None if change.topic == "t" else "a policy of the cluster" for change in changes
        }

    monkeypatch.setattr(config_sync, "describe_topic_configs", described)
    monkeypatch.setattr(config_sync, "alter_topic_configs", alter)
    log = Lake()
    twice(sync_of(ConfigSync, tmp_path, log).sync, log)
    assert log.recorded() == [("east.t", "done"), ("east.u", "refused")]


def test_acls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at: dict[str, set[Acl]] = {"east": {acl("t"), acl("u")}, "west": set()}

    def create(_cluster: object, acls: Sequence[Acl]) -> dict[Acl, str | None]:
        at["west"] |= {one for one in acls if one.name == "east.t"}
        return {one: None if one.name == "east.t" else "a policy of the cluster" for one in acls}

    monkeypatch.setattr(
        acl_sync, "describe_topic_acls", lambda cluster: frozenset(at[cluster.alias])
    )
    monkeypatch.setattr(acl_sync, "create_acls", create)
    monkeypatch.setattr(acl_sync, "delete_acls", lambda *_: {})
    log = Lake()
    twice(sync_of(AclSync, tmp_path, log).sync, log)
    assert sorted(log.recorded()) == [("east.t", "done"), ("east.u", "refused")]


@pytest.mark.parametrize("notes", [True, False])
def test_topics(tmp_path: Path, notes: bool) -> None:
    """Also where it is not noted either which topics these are."""
    flow = {"topics": ["t", "u"], "sync_topic_acls_enabled": False}
    flow |= {"sync_topic_configs_enabled": False}
    topology = load_topology(write_file(tmp_path, flows={FLOW: flow}))
    target = MemoryCluster("west", {"east.u": [0]})
    clusters: Any = {"east": MemoryCluster("east", {"t": [0], "u": [0, 0], "v": [0]})}
    connections = Connections(topology, clusters | {"west": target})
    log: Any = Lake()
    log.incidents = SimpleNamespace(
        open_all=lambda *_: None, close=lambda *_: None, close_except=lambda *_: None
    )
    log.states = SimpleNamespace(note_acls=lambda *_: None)
    answers = ("target_generations_of", "target_decisions", "mapped_targets")
    lake = MemoryLake(dict.fromkeys(answers, ()))
    commit = lake.append

    def append(*rows: Any) -> None:
        if log.is_away and not notes:
            raise OSError("the store is away")
        commit(*rows)

    lake.append = append  # type: ignore[method-assign, assignment]
    left_out = {"u": "another flow mirrors it"} if notes else {}
    topics = TargetTopics(topology.flow(FLOW), Deployment(lake, connections, log), left_out)
    twice(topics.refresh, log)
    others = ("east.u", "refused") if notes else ("east.u", "done")
    assert sorted(log.recorded()) == [("east.t", "done"), others], "each of them once"
    assert len(target.ends["east.u"]) == (1 if notes else 2)
