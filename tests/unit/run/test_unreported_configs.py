"""What `plan` could not check, since a cluster does not report configs, is said."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.admin_configs import Described
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import ConfigValue, TopicConfigs
from mirrorlake.run import limits
from mirrorlake.run.limits import limit_problems
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, write_file

CONFIGS: TopicConfigs = {"max.message.bytes": ConfigValue("1000000", "default")}


@pytest.mark.parametrize(
    ("source", "target", "brokers", "said"),
    [
        ({"made", "there"}, {"east.there"}, "1000000", None),
        ({"there"}, {"east.there"}, "1000000", "of 1 topics of flow east->west, such as made"),
        (set(), {"east.there"}, "1000000", "of 2 topics of flow east->west, such as made"),
        ({"made", "there"}, set(), "1000000", "of 1 topics of flow east->west, such as there"),
        ({"made", "there"}, {"east.there"}, None, "of 1 topics of flow east->west, such as made"),
    ],
    ids=["all", "one at the source", "none at the source", "none at the target", "no brokers"],
)
def test_one_note_counts_the_topics(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: set[str],
    target: set[str],
    brokers: str | None,
    said: str | None,
) -> None:
    def described(_cluster: object, topics: Iterable[str]) -> Described:
        return Described({name: CONFIGS for name in topics if name in target})

    monkeypatch.setattr(limits, "describe_topic_configs", described)
    monkeypatch.setattr(limits, "broker_config", lambda *_: brokers)
    topology = load_topology(write_file(tmp_path))
    clusters = {alias: MemoryCluster(alias) for alias in ("east", "west")}
    topics: list[dict[str, Any]] = [
        {"topic": "made", "target_topic": "east.made", "action": "create", "configs": {}},
        {"topic": "there", "target_topic": "east.there", "action": "keep", "configs": {}},
        {"topic": "left", "target_topic": "east.left", "action": "refuse", "configs": {}},
    ]
    problems = limit_problems(
        Connections(topology, clusters),
        topology.flow(FLOW),
        {"topics": topics, "configs": []},
        dict.fromkeys(source, CONFIGS),
    )
    assert [problem.rule for problem in problems] == ["unreported-configs"] * (said is not None)
    if said is not None:
        (problem,) = problems
        west = "made" in source
        assert said in problem.sentence and problem.severity == "note"
        assert f"cluster {'west' if west else 'east'} does not report" in problem.sentence
        assert ("missed deletions" in problem.sentence) is (source < {"made", "there"})


def test_a_broker_without_that_config_is_no_missing_right_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note named the target, which reports it, and said that none is reported."""

    def described(_cluster: object, topics: Iterable[str]) -> Described:
        return Described(dict.fromkeys(topics, CONFIGS))

    monkeypatch.setattr(limits, "describe_topic_configs", described)
    monkeypatch.setattr(limits, "broker_config", lambda *_: None)
    topology = load_topology(write_file(tmp_path))
    connections = Connections(topology, {alias: MemoryCluster(alias) for alias in ("east", "west")})
    topic = {"topic": "there", "target_topic": "east.there", "action": "keep", "configs": {}}
    others: TopicConfigs = {"retention.ms": ConfigValue("1", "default")}
    (problem,) = limit_problems(
        connections, topology.flow(FLOW), {"topics": [topic], "configs": []}, {"there": others}
    )
    assert problem.sentence == (
        "whether the target takes the largest records of 1 topics of flow east->west, such as "
        "there, was not checked: cluster east does not report max.message.bytes of them"
    )
    assert problem.fix is not None and "the brokers have no such config" in problem.fix
