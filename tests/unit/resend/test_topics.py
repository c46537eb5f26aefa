"""Which topics a resend may write to, and how those are made that are missing."""

from pathlib import Path
from typing import cast

import pytest
import yaml

from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.errors import InputError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.resend.topics import Stated, check_name, check_partitions, written_by_flows

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


def test_what_is_no_target() -> None:
    check_name("orders.replay")
    check_partitions(None, 5, "orders")
    check_partitions(TopicInfo("t", 5, 1), 5, "orders")
    with pytest.raises(InputError, match="'a b' is no name of a topic"):
        check_name("a b")
    with pytest.raises(InputError, match="topic t has 4 partitions and orders has 5"):
        check_partitions(TopicInfo("t", 4, 1), 5, "orders")
