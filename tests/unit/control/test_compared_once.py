"""A flow and its control begin together, and ask each cluster for ACLs and configs once."""

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.control import acl_sync, config_sync, kept_alike
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.errors import LakeError
from mirrorlake.kafka.admin_configs import Described
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.other_logs import OtherLogs
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.lake_rows import FLOW, write_file


class Asked:
    """Clusters that count how often they are asked for ACLs and configs; both have none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.acls: list[str] = []
        self.configs: list[str] = []
        monkeypatch.setattr(acl_sync, "describe_topic_acls", self._acls)
        monkeypatch.setattr(config_sync, "describe_topic_configs", self._configs)
        for module, change in (
            (acl_sync, "create_acls"),
            (acl_sync, "delete_acls"),
            (config_sync, "alter_topic_configs"),
        ):
            monkeypatch.setattr(module, change, lambda *_: {})

    def _acls(self, cluster: MemoryCluster) -> frozenset[Any]:
        self.acls.append(cluster.alias)
        return frozenset()

    def _configs(self, cluster: MemoryCluster, topics: Iterable[str]) -> Described:
        self.configs.append(cluster.alias)
        return Described({topic: {} for topic in topics}, {})


def kept_alike_of(tmp_path: Path) -> kept_alike.KeptAlike:
    topology = load_topology(write_file(tmp_path, flows={FLOW: {"topics": ["t"]}}))
    clusters: Any = {alias: MemoryCluster(alias, {"t": [0]}) for alias in ("east", "west")}
    nothing = lambda *_, **__: {}  # noqa: E731
    event_log: Any = MemoryLog()
    event_log.states = SimpleNamespace(note=nothing, note_acls=nothing, newest=nothing)
    event_log.incidents = SimpleNamespace(other_logs=lambda *_: OtherLogs("east", frozenset(), {}))
    lake = MemoryLake()
    lake.answers["target_generations_of"] = []
    deployment = Deployment(lake, Connections(topology, clusters), event_log)
    return TargetTopics(topology.flow(FLOW), deployment).kept_alike


def test_what_a_flow_compared_its_control_does_not_compare_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch)
    topics = kept_alike_of(tmp_path)
    topics.sync()  # the flow, before its first record
    topics.sync_acls()  # its control's first turn
    topics.sync_configs()
    assert (asked.acls, asked.configs) == (["east", "west"], ["east", "west"])
    monkeypatch.setattr(kept_alike, "COMPARED_SECONDS", 0.0)
    topics.sync_acls()  # a later turn
    topics.sync_configs()
    assert (len(asked.acls), len(asked.configs)) == (4, 4)


@pytest.mark.parametrize("what", ["acls", "configs"])
def test_a_comparison_whose_changes_failed_is_made_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A second try a moment later counted as done, and closed the incident."""
    asked = Asked(monkeypatch)
    topics = kept_alike_of(tmp_path)
    sync = topics.sync_acls if what == "acls" else topics.sync_configs
    side = topics._acls if what == "acls" else topics._configs

    def breaks(_rows: object) -> None:
        raise LakeError("the disk is full")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(side, "_log_and_record", breaks)
        with pytest.raises(LakeError):
            sync()
    sync()
    sync()
    assert (asked.acls if what == "acls" else asked.configs) == ["east", "west"] * 2
