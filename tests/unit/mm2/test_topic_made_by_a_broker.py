"""A checkpoints topic that a broker made by itself would lose what MirrorMaker 2's clients look
for."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.admin_configs import Described
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import ConfigValue, Origin
from mirrorlake.lake.changes import Change, MemoryLog
from mirrorlake.mm2 import internal_topics
from mirrorlake.mm2.formats import MirrorCheckpoint, encode_checkpoint
from mirrorlake.mm2.mirror_topics import CheckpointTopic
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, write_file

NAME = "east.checkpoints.internal"


class Configs:
    """Of the target: what it reports, and what was altered, to which it answers with `error`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.policy: ConfigValue | None = None
        self.rights: frozenset[str] | None = None
        self.error: str | None = None
        self.asked = 0
        self.altered: list[tuple[str, str, str]] = []
        monkeypatch.setattr(internal_topics, "describe_topic_configs", self._describe)
        monkeypatch.setattr(internal_topics, "alter_topic_configs", self._alter)
        monkeypatch.setattr(
            internal_topics, "topic_rights", lambda _, names: dict.fromkeys(names, self.rights)
        )
        monkeypatch.setattr(MemoryCluster, "client", None, raising=False)

    def _describe(self, _cluster: MemoryCluster, topics: Iterable[str]) -> Described:
        self.asked += 1
        if self.policy is None:
            return Described({}, dict.fromkeys(topics, "not authorized"))
        return Described({name: {"cleanup.policy": self.policy} for name in topics}, {})

    def _alter(self, _cluster: MemoryCluster, edits: Iterable[Any]) -> dict[Any, str | None]:
        self.altered += [tuple(edit) for edit in edits]
        return dict.fromkeys(edits, self.error)


@pytest.fixture
def configs(monkeypatch: pytest.MonkeyPatch) -> Configs:
    return Configs(monkeypatch)


def published(directory: Path, there: bool) -> list[Change]:
    """What `changes` has after two turns without a checkpoint."""
    topology = load_topology(write_file(directory))
    topics = {NAME: [0, 0]} if there else {}
    clusters: Any = {"east": MemoryCluster("east"), "west": MemoryCluster("west", topics)}
    log = MemoryLog()
    topic = CheckpointTopic(topology.flow(FLOW), Connections(topology, clusters), log)
    assert (topic.publish([]), topic.publish([])) == (0, 0)
    return [change for _, change in log.rows if change.kind == "config"]


def test_it_is_compacted_from_then_on(tmp_path: Path, configs: Configs) -> None:
    configs.policy = ConfigValue("delete", "default")
    (change,) = published(tmp_path, there=True)
    assert configs.altered == [(NAME, "cleanup.policy", "compact")]
    assert (change.resource, change.before, change.after, change.outcome) == (
        NAME, "cleanup.policy=delete", "cleanup.policy=compact", "done",
    )  # fmt: skip


def test_one_that_it_makes_again_is_written_and_compacted_once_more(
    tmp_path: Path, configs: Configs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of MirrorMaker 2 finds a group by its checkpoint alone, also one that stands
    still."""
    written: list[Any] = []
    monkeypatch.setattr(
        internal_topics.InternalTopic, "write", lambda _, records: written.extend(records)
    )
    configs.policy = ConfigValue("compact", "topic")
    west = MemoryCluster("west", {NAME: [0]})
    topology = load_topology(write_file(tmp_path))
    clusters: Any = {"east": MemoryCluster("east"), "west": west}
    topic = CheckpointTopic(topology.flow(FLOW), Connections(topology, clusters), MemoryLog())
    stands, moves = (MirrorCheckpoint(group, "east.t", 0, 5, 5) for group in ("a", "b"))
    assert (topic.publish([stands]), topic.publish([])) == (1, 0)
    west.make(NAME, 0)
    configs.policy = ConfigValue("delete", "default")
    assert (topic.publish([]), topic.publish([])) == (1, 0)
    assert configs.altered == [(NAME, "cleanup.policy", "compact")]
    west.delete(NAME)
    assert (topic.publish([moves]), topic.publish([])) == (2, 0)
    assert [made.name for made in west.made] == [NAME]
    assert written == [encode_checkpoint(one) for one in (stands, stands, stands, moves)]


def test_a_target_that_does_not_let_us_is_told_of(
    tmp_path: Path, configs: Configs, caplog: pytest.LogCaptureFixture
) -> None:
    configs.policy, configs.error = ConfigValue("delete", "broker"), "not authorized"
    (change,) = published(tmp_path, there=True)
    assert (change.outcome, change.error) == ("refused", "not authorized")
    assert f"topic {NAME} on cluster west deletes checkpoints" in caplog.text


@pytest.mark.parametrize(
    ("policy", "origin"),
    [("compact", "topic"), ("delete", "topic"), ("compact,delete", "topic"), ("compact", "broker")],
)
def test_what_is_kept_or_was_set_by_somebody_stays(
    tmp_path: Path, configs: Configs, policy: str, origin: Origin
) -> None:
    configs.policy = ConfigValue(policy, origin)
    assert published(tmp_path, there=True) == [] == configs.altered
    assert configs.asked == 1, "a process asks once"


def test_a_cluster_that_does_not_report_it_is_not_asked_to_change_it(
    tmp_path: Path, configs: Configs
) -> None:
    assert published(tmp_path, there=True) == [] == configs.altered


@pytest.mark.parametrize(
    ("rights", "asked"), [({"WRITE", "DESCRIBE_CONFIGS"}, 0), ({*internal_topics._RIGHTS}, 1)]
)
def test_who_may_not_change_it_does_not_ask(
    tmp_path: Path, configs: Configs, rights: set[str], asked: int
) -> None:
    configs.policy, configs.rights = ConfigValue("compact", "default"), frozenset(rights)
    assert published(tmp_path, there=True) == []
    assert configs.asked == asked


def test_one_that_we_make_is_not_looked_at(tmp_path: Path, configs: Configs) -> None:
    assert published(tmp_path, there=False) == []
    assert configs.asked == 0
