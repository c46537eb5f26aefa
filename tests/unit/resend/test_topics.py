"""Which topics a resend may write to, and how those are made that are missing."""

import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import yaml

from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.errors import InputError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_configs import Described
from mirrorlake.kafka.values import ConfigValue, TopicInfo
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.resend import topics
from mirrorlake.resend.topics import (
    Stated,
    check_kept,
    check_name,
    check_partitions,
    made_with,
    written_by_flows,
)

STAGED = {"east": {"orders", "payments"}, "west": {"users"}}


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    document = {
        "clusters": {alias: {"bootstrap_servers": "x:1"} for alias in ("east", "west", "north")},
        "lake": {"path": "./lake"},
        "flows": {
            "east->west": {"topics": ["orders"]},
            "east->north": {"policy": "identity", "enabled": False},
            "west->north": {"topics": ["nothing"]},
        },
    }
    file = tmp_path / "mirrorlake.yml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return load_topology(file)


@pytest.mark.parametrize(
    ("cluster", "topics"),
    [
        ("west", {"east.orders": "east->west"}),
        ("north", {"orders": "east->north", "payments": "east->north"}),
        ("east", {}),
    ],
)
def test_who_writes_to_topics(topology: Topology, cluster: str, topics: dict[str, str]) -> None:
    assert written_by_flows(topology, cluster, STAGED) == topics


class TwoBrokers:
    def registered_brokers(self, _name: str, asked: int) -> int:
        return min(asked, 2)


def test_a_topic_is_made_as_it_was() -> None:
    stated = Stated(cast(ClusterAdmin, TwoBrokers()))
    state = TopicState(6, 3, {"cleanup.policy": "compact"})
    assert stated.topic("t", state, 4, {"a": "b"}) == TopicInfo("t", 6, 2, {"a": "b"})
    assert stated.topic("t", TopicState(2, 1), 4, {}) == TopicInfo("t", 4, 1)
    assert stated.topic("t", None, 4, {}) == TopicInfo("t", 4, -1)


def test_a_topic_is_made_to_keep_what_it_gets() -> None:
    """Whatever is the default of its cluster, and whatever deleted the records at their source."""
    own = {"max.message.bytes": "9", "retention.ms": "1000", "cleanup.policy": "compact"}
    made = made_with(TopicState(1, 1, own))
    kept = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
    assert made.items() >= {**kept, "message.timestamp.type": "CreateTime"}.items()
    assert made["max.message.bytes"] == "9" and "max.message.bytes" not in made_with(None)


def test_what_is_no_target() -> None:
    check_name("orders.replay")
    check_partitions(None, 5, "orders")
    check_partitions(TopicInfo("t", 5, 1), 5, "orders")
    with pytest.raises(InputError, match="'a b' is no name of a topic"):
        check_name("a b")
    with pytest.raises(InputError, match="topic t has 4 partitions and orders has 5"):
        check_partitions(TopicInfo("t", 4, 1), 5, "orders")


@pytest.mark.parametrize(
    ("own", "age_ms", "refused"),
    [
        ({"retention.ms": "1000"}, 60_000, True),
        ({"retention.ms": "1000000"}, 60_000, False),
        ({"retention.ms": "-1", "retention.bytes": "9"}, 60_000, True),
        ({"retention.ms": "-1", "retention.bytes": "-1"}, 60_000, False),
        ({"retention.ms": "1000", "cleanup.policy": "compact"}, 60_000, False),
        ({"retention.ms": "1000", "message.timestamp.type": "CreateTime"}, 60_000, True),
        ({"retention.ms": "1000", "message.timestamp.type": "LogAppendTime"}, 60_000, False),
        ({"retention.bytes": "9", "message.timestamp.type": "LogAppendTime"}, 60_000, True),
    ],
)
def test_a_topic_that_is_there_must_not_delete_what_it_gets(
    monkeypatch: pytest.MonkeyPatch, own: dict[str, str], age_ms: int, refused: bool
) -> None:
    """Its brokers would, within minutes, and the command had said that all is there."""
    configs = {name: ConfigValue(value, "cluster") for name, value in own.items()}
    described = Described({"t": configs})
    monkeypatch.setattr(topics, "describe_topic_configs", lambda *_: described)
    admin = cast(ClusterAdmin, SimpleNamespace(alias="west"))
    oldest = {"t": time.time_ns() // 1_000_000 - age_ms}
    with pytest.raises(InputError, match="topic t of .* west may") if refused else nullcontext():
        check_kept(admin, oldest)


def test_a_topic_whose_retention_is_not_reported_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It counted as one that deletes nothing."""
    described = Described(refused={"t": "Topic authorization failed"})
    monkeypatch.setattr(topics, "describe_topic_configs", lambda *_: described)
    admin = cast(ClusterAdmin, SimpleNamespace(alias="west"))
    said = r"west does not report the retention of topic t \(Topic auth.*DESCRIBE_CONFIGS"
    with pytest.raises(InputError, match=said):
        check_kept(admin, {"t": time.time_ns() // 1_000_000})
    check_kept(admin, {})
