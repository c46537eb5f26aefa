"""Whole files as people write them: each passes `load_topology`, or is refused in one sentence; no
secret gets out."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError
from mirrorlake.mm2.importer.document import topology_text
from mirrorlake.mm2.importer.entries import SourceFile, read_json, read_properties
from mirrorlake.mm2.importer.mirrormaker1 import Options
from mirrorlake.mm2.importer.read import Imported, import_files

SAMPLES = Path(__file__).parent / "samples"
MM1 = ("mm1-consumer.properties", "mm1-producer.properties")
CONNECT = ("source.json", "checkpoint.json", "heartbeat.json")
#: Its login has no counterpart: who imported it writes the security block.
KERBEROS = ("kerberos.mm2.properties",)
GOOD = [
    ("two-way.mm2.properties",),
    ("secure.mm2.properties",),
    ("token.mm2.properties",),
    KERBEROS,
    CONNECT,
    ("source.json",),
    ("standalone.properties",),
    MM1,
]


def imported(*names: str) -> Imported:
    files = [SourceFile(name, (SAMPLES / name).read_bytes()) for name in names]
    return import_files(files, Options(whitelist="orders.*,pay") if names == MM1 else Options())


def holds(document: Any, path: str) -> bool:
    """Whether a document has a value under a path of keys, which may hold dots themselves."""
    if not path:
        return True
    if not isinstance(document, dict):
        return False
    return any(
        holds(value, path[len(key) + 1 :])
        for key, value in document.items()
        if f"{path}.".startswith(f"{key}.")
    )


@pytest.mark.parametrize("names", [each for each in GOOD if each != KERBEROS], ids="+".join)
def test_a_good_file_becomes_a_topology_that_loads(names: tuple[str, ...], tmp_path: Path) -> None:
    draft = imported(*names)
    path = tmp_path / "mirrorlake.yml"
    path.write_text(topology_text(draft.topology, names, draft.variables), encoding="utf-8")
    topology = load_topology(path)
    assert yaml.safe_load(path.read_text(encoding="utf-8")) == draft.topology
    assert list(topology.flows) == list(draft.topology["flows"])
    for flow in topology.active_flows():
        flow.selection.java_pattern()


@pytest.mark.parametrize("names", GOOD, ids="+".join)
def test_every_key_is_accounted_for_and_no_secret_gets_out(names: tuple[str, ...]) -> None:
    draft = imported(*names)
    told = {
        (row["file"], row["line"], row["key"])
        for part in ("carried", "not_needed", "not_supported")
        for row in draft.report[part]
    }
    for name in names:
        file = SourceFile(name, (SAMPLES / name).read_bytes())
        groups = read_json(file) if name.endswith(".json") else [read_properties(file)]
        assert {(entry.file, entry.line, entry.key) for group in groups for entry in group} <= told
    for row in draft.report["carried"]:
        for to in row["to"].split(", "):
            assert holds(draft.topology, to), to
    everything = json.dumps([draft.topology, draft.report]) + topology_text(
        draft.topology, names, draft.variables
    )
    assert "hunter2" not in everything + repr(draft)
    for variable in draft.variables:
        assert f"${{env:{variable}}}" in everything
        assert len([note for note in draft.report["notes"] if f"variable {variable}," in note]) == 1


def test_two_way_between_two_clusters() -> None:
    topology = imported("two-way.mm2.properties").topology
    assert topology["clusters"]["east"] == {
        "bootstrap_servers": "east-1:9092, east-2:9092",
        "consumer": {"fetch.max.wait.ms": 200},
    }
    assert topology["clusters"]["west"]["producer"] == {"linger.ms": 50, "compression.type": "zstd"}
    assert topology["lake"] == {"path": "./lake"}
    assert topology["defaults"] == {
        "replication_factor": 3,
        "refresh_topics_interval_seconds": 30,
        "sync_topic_acls_enabled": False,
        "sync_group_offsets_enabled": True,
        "emit_heartbeats_enabled": False,
        "checkpoints_topic_replication_factor": 3,
        "offset_syncs_topic_replication_factor": 3,
        "replication_policy_separator": "_",
    }
    assert topology["flows"] == {
        "east->west": {
            "enabled": True,
            "topics": ["orders.*", "payments", r"user\.v[0-9]+"],
            "topics_exclude": [".*-tmp"],
            "delivery": "exactly_once",
        },
        "west->east": {"enabled": True, "topics": [".*"], "groups_exclude": ["console-.*"]},
    }


def test_connectors_that_make_one_flow_together() -> None:
    topology = imported(*CONNECT).topology
    assert topology["clusters"]["west"] == {
        "bootstrap_servers": "west:9092",
        "producer": {"batch.size": 327680, "queue.buffering.max.kbytes": 65536},
    }
    flow = topology["flows"]["east->west"]
    assert flow["topics"] == ["orders", "payments.*"] and flow["groups"] == ["app-.*"]
    assert flow["sync_group_offsets_enabled"] is False and flow["emit_heartbeats_enabled"] is False
    alone = imported("source.json").report["notes"]
    assert len([note for note in alone if "came without a Mirror" in note]) == 2
    assert not [note for note in imported(*CONNECT).report["notes"] if "came without" in note]


def test_mirrormaker_1() -> None:
    topology = imported(*MM1).topology
    assert topology["flows"] == {
        "source->target": {
            "policy": "identity",
            "topics": ["orders.*", "pay"],
            "topics_exclude": [],
        }
    }
    assert topology["clusters"]["source"]["consumer"] == {
        "client.id": "mm1",
        "fetch.min.bytes": 1024,
    }


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("blanks.mm2.properties",), "blanks.mm2.properties, line 5: a is all of a key"),
        (("broken.json",), "broken.json is not valid JSON in line 3"),
        (("replicator.json",), "replicator.json, line 1: connector.class is none of MirrorMaker "
                               "2's connectors"),
        (("server.properties",), "server.properties is no file of MirrorMaker"),
        (("source.json", "contradicting-checkpoint.json"),
         "contradicting-checkpoint.json, line 5: source.cluster.bootstrap.servers contradicts "
         "source.json, line 9"),
        (("source.json", "source.json"), "is the second MirrorSourceConnector of flow east->west"),
        (("checkpoint.json", "mm1-producer.properties"), "the files belong to Kafka Connect and to "
                                                         "MirrorMaker 1"),
        (("heartbeat.json",), "no connector of flow east->west gives "
                              "source.cluster.bootstrap.servers"),
    ],
)  # fmt: skip
def test_bad_files(names: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(*names)
    assert sentence in caught.value.message and "\n" not in caught.value.message
    assert caught.value.exit_code == 2


def test_the_connectors_without_one_that_mirrors() -> None:
    names = imported("checkpoint.json")
    assert names.topology["flows"]["east->west"]["enabled"] is False
    assert any(note.startswith("flow east->west is disabled") for note in names.report["notes"])


def connector(kind: str, **config: object) -> SourceFile:
    base = {
        "connector.class": kind,
        "source.cluster.alias": "a",
        "source.cluster.bootstrap.servers": "a:1",
        "target.cluster.alias": "b",
        "target.cluster.bootstrap.servers": "b:1",
    }
    return SourceFile(
        f"{kind}.json",
        json.dumps({**base, **{key.replace("_", "."): v for key, v in config.items()}}).encode(),
    )


@pytest.mark.parametrize(
    ("kind", "config", "expected"),
    [
        ("MirrorSourceConnector", {"enabled": False}, {"enabled": False}),
        ("MirrorSourceConnector", {"enabled": "true"}, {"enabled": True}),
        ("MirrorCheckpointConnector", {"enabled": False, "emit_checkpoints_enabled": True},
         {"emit_checkpoints_enabled": False, "sync_group_offsets_enabled": False}),
        ("MirrorCheckpointConnector", {"enabled": True, "sync_group_offsets_enabled": False},
         {"sync_group_offsets_enabled": False}),
        ("MirrorHeartbeatConnector", {"enabled": False}, {"emit_heartbeats_enabled": False}),
    ],
)  # fmt: skip
def test_what_a_disabled_connector_means(
    kind: str, config: dict[str, object], expected: dict[str, bool]
) -> None:
    files = [connector(kind, **config)]
    if kind != "MirrorSourceConnector":
        files.append(connector("MirrorSourceConnector"))
    assert import_files(files).topology["flows"]["a->b"] == expected


def test_what_a_connector_must_say() -> None:
    with pytest.raises(InputError, match="comes without source.cluster.alias"):
        import_files([connector("MirrorSourceConnector", source_cluster_alias="")])
    contradicting = connector("MirrorCheckpointConnector", topics="y")
    with pytest.raises(
        InputError, match="topics contradicts MirrorSourceConnector.json, line 1: topics"
    ):
        import_files([connector("MirrorSourceConnector", topics="x"), contradicting])
    by_default = json.loads(connector("MirrorSourceConnector").data)
    del by_default["target.cluster.alias"]
    draft = import_files([SourceFile("x", json.dumps(by_default).encode())])
    assert list(draft.topology["flows"]) == ["a->target"]


def test_fan_out_of_connectors() -> None:
    second = json.loads(connector("MirrorSourceConnector", source_consumer_fetch_min_bytes=2).data)
    second |= {"target.cluster.alias": "c", "target.cluster.bootstrap.servers": "c:1"}
    second["source.consumer.fetch.min.bytes"] = second.pop("source.consumer.fetch.min.bytes")
    files = [
        connector("MirrorSourceConnector", source_consumer_fetch_min_bytes=1),
        SourceFile("c", json.dumps(second).encode()),
    ]
    draft = import_files(files)
    assert list(draft.topology["flows"]) == ["a->b", "a->c"]
    assert draft.topology["clusters"]["a"]["consumer"] == {"fetch.min.bytes": 1}
    assert "takes one value" in draft.report["not_supported"][0]["reason"]
