"""Of several places that give a setting, that one counts which counts for MirrorMaker 2."""

import json
from typing import Any

import pytest

from mirrorlake.mm2.importer import connect, flow_keys
from mirrorlake.mm2.importer.entries import SourceFile
from mirrorlake.mm2.importer.read import Imported, import_files

ENDS = {
    "source.cluster.alias": "a",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.alias": "b",
    "target.cluster.bootstrap.servers": "b:1",
}
SOURCE, CHECKPOINT, HEARTBEAT = connect._CONNECTORS
ALL_READ = {
    "enabled",
    "replication.policy.separator",
    "replication.policy.internal.topic.separator.enabled",
}


def connectors(**configs: dict[str, object]) -> Imported:
    """Connectors by what they do, each with a config beside its ends."""
    return import_files(
        [
            SourceFile(
                f"{name}.json",
                json.dumps({"connector.class": f"Mirror{name}Connector", **ENDS, **given}).encode(),
            )
            for name, given in configs.items()
        ]
    )


def flow_of(found: Imported) -> dict[str, Any]:
    topology = found.topology
    return {**topology.get("defaults", {}), **topology["flows"]["a->b"]}


def reasons(found: Imported, part: str, key: str) -> list[str]:
    return [row["reason"] for row in found.report[part] if row["key"] == key]


def test_each_setting_of_a_flow_is_read_by_a_connector() -> None:
    assert set().union(*connect._READ_BY.values()) == flow_keys.CARRIED - ALL_READ
    assert set(connect._READ_BY) == set(connect._CONNECTORS)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sync.group.offsets.enabled", "true"),
        ("groups", "x"),
        ("emit.checkpoints.enabled", "false"),
    ],
)
def test_what_stands_with_the_wrong_connector_has_no_effect(key: str, value: str) -> None:
    """MirrorMaker 2 moved no groups by it, and neither does the flow."""
    found = connectors(Source={key: value}, Checkpoint={})
    assert flow_of(found).get(key.replace(".", "_")) in (None, False if "sync" in key else None)
    assert reasons(found, "not_needed", key) == [f"only the config of a {CHECKPOINT} counts for it"]


def test_the_same_config_for_all_of_them_counts_where_it_is_read() -> None:
    config: dict[str, object] = {"topics": "x", "groups": "y", "emit.heartbeats.enabled": "false"}
    flow = flow_of(connectors(Source=config, Checkpoint=config, Heartbeat=config))
    assert (flow["topics"], flow["groups"]) == (["x"], ["y"])
    assert flow["emit_heartbeats_enabled"] is False


@pytest.mark.parametrize(("key", "value"), [("topics", "x"), ("topics.exclude", "")])
def test_topics_of_groups_are_not_those_of_records(key: str, value: str) -> None:
    """The connector that mirrors has its default: `.*` without MirrorMaker 2's own topics."""
    found = connectors(Source={}, Checkpoint={key: value})
    assert key.replace(".", "_") not in flow_of(found)
    (why,) = reasons(found, "not_supported", key)
    assert why.startswith("the MirrorSourceConnector of flow a->b has the default")
    assert flow_of(connectors(Source={key: value}, Checkpoint={key: value})) != flow_of(found)


def test_topics_of_groups_that_are_the_default_are_carried() -> None:
    assert flow_of(connectors(Source={}, Checkpoint={"topics": ".*"}))["topics"] == [".*"]


@pytest.mark.parametrize(
    ("state", "paused"), [("PAUSED", True), ("STOPPED", True), ("RUNNING", None), ("FAILED", None)]
)
def test_a_connector_that_stands_by_connects_own_word(state: str, paused: bool | None) -> None:
    config = {"connector.class": "MirrorSourceConnector", **ENDS}
    answer = {
        "mirror": {
            "status": {"name": "mirror", "connector": {"state": state, "worker_id": "w"}},
            "info": {"name": "mirror", "config": config, "tasks": [], "type": "source"},
        }
    }
    found = import_files([SourceFile("connectors.json", json.dumps(answer).encode())])
    assert flow_of(found).get("paused") == paused
    assert not found.report["not_supported"]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("key", "weak", "strong", "block"),
    [
        ("security.protocol", "PLAINTEXT", "SSL", "security"),
        ("fetch.min.bytes", "1", "2", "consumer"),
    ],
)
def test_the_consumer_of_a_cluster_counts_before_that_of_a_flow(
    key: str, weak: str, strong: str, block: str, swapped: bool
) -> None:
    """Whichever stands first in the file."""
    lines = [f"a->b.consumer.{key} = {weak}", f"a.consumer.{key} = {strong}"]
    text = "\n".join(
        [
            "clusters = a, b",
            "a.bootstrap.servers = a:1",
            "b.bootstrap.servers = b:1",
            "a->b.enabled = true",
            *(reversed(lines) if swapped else lines),
        ]
    )
    found = import_files([SourceFile("mm2.properties", text.encode())])
    assert strong in map(str, found.topology["clusters"]["a"][block].values())
