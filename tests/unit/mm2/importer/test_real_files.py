"""Files of the shapes that people have: what other programs made of them, and what older versions
took."""

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError
from mirrorlake.mm2.importer.document import topology_text
from mirrorlake.mm2.importer.entries import SourceFile
from mirrorlake.mm2.importer.mirrormaker1 import Options
from mirrorlake.mm2.importer.read import Imported, import_files

MIRROR = "org.apache.kafka.connect.mirror."
ENDS = {"source.cluster.bootstrap.servers": "a:1", "target.cluster.bootstrap.servers": "b:1"}


def read(name: str, content: str) -> Imported:
    return import_files([SourceFile(name, content.encode())])


def loaded(imported: Imported, directory: Path) -> Any:
    """The topology as `plan` reads it."""
    path = directory / "mirrorlake.yml"
    path.write_text(topology_text(imported.topology, ["f"], imported.variables), encoding="utf-8")
    return load_topology(path)


def test_a_heading_by_configparser_is_a_key_that_kafka_leaves_alone(tmp_path: Path) -> None:
    imported = read(
        "mm2.properties",
        "[mirrormaker]\nclusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\n"
        "a->b.enabled = true\n\n[topics of b]\na->b.topics = orders.*\n",
    )
    assert loaded(imported, tmp_path).flow("a->b").settings.topics == ("orders.*",)
    headings = [row for row in imported.report["not_needed"] if row["key"].startswith("[")]
    assert [(row["line"], row["key"]) for row in headings] == [(1, "[mirrormaker]"), (7, "[topics")]
    assert "heading" in headings[0]["reason"]


def listing(**others: dict[str, Any]) -> str:
    """What `GET /connectors?expand=info&expand=status` answers."""

    def connector(name: str, config: dict[str, str]) -> dict[str, Any]:
        return {
            "info": {"name": name, "config": config, "tasks": [], "type": "source"},
            "status": {"name": name, "connector": {"state": "RUNNING", "worker_id": "w:8083"}},
        }

    ends = {**ENDS, "source.cluster.alias": "east", "target.cluster.alias": "west"}
    mirrors = {
        kind: connector(kind, {"connector.class": MIRROR + kind, "name": kind, **ends, **more})
        for kind, more in (
            ("MirrorSourceConnector", {"topics": "orders.*"}),
            ("MirrorCheckpointConnector", {"groups": "billing"}),
        )
    }
    others = {name: connector(name, config) for name, config in others.items()}
    return json.dumps({**mirrors, **others}, indent=1)


def test_the_answer_of_connects_rest_interface(tmp_path: Path) -> None:
    imported = read("connectors.json", listing())
    flow = loaded(imported, tmp_path).flow("east->west").settings
    assert (flow.topics, flow.groups) == (("orders.*",), ("billing",))
    lines = {row["key"]: row["line"] for row in imported.report["carried"]}
    text = listing().splitlines()
    assert '"topics"' in text[lines["topics"] - 1] and '"groups"' in text[lines["groups"] - 1]


def test_other_connectors_of_a_worker_are_left_where_they_are() -> None:
    sink = {"connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector", "topics": "orders"}
    imported = read("connectors.json", listing(sink=sink))
    assert imported.topology["flows"]["east->west"]["topics"] == ["orders.*"]
    left = [row for row in imported.report["not_needed"] if "none of Mirr" in row["reason"]]
    assert {"connector.class", "topics"} <= {row["key"] for row in left}


def test_a_worker_without_mirrormaker_is_refused_by_its_class() -> None:
    sink = {"connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector"}
    with pytest.raises(InputError, match=r"connector.class is none of MirrorMaker 2's connectors"):
        read("connectors.json", json.dumps({"sink": {"info": {"name": "sink", "config": sink}}}))


def test_states_alone_say_what_to_save() -> None:
    with pytest.raises(InputError, match=r"not their configs; save what GET /connectors\?expand="):
        read("connectors.json", json.dumps({"m": {"status": {"name": "m"}}}))


NAMELESS = {**ENDS, "source.cluster.alias": "", "target.cluster.alias": ""}


@pytest.mark.parametrize(
    "naming",
    [
        {"replication.policy.separator": ""},
        {
            "replication.policy.separator": "",
            "replication.policy.class": MIRROR + "DefaultReplicationPolicy",
        },
        {"replication.policy.class": "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"},
    ],
)
def test_names_stay_by_an_empty_alias(naming: dict[str, str], tmp_path: Path) -> None:
    config = {"connector.class": f"{MIRROR}MirrorSourceConnector", **NAMELESS, **naming}
    imported = read("source.json", json.dumps({"name": "m", "config": config}))
    flow = loaded(imported, tmp_path).flow("source->target")
    assert flow.target_topic("orders") == "orders"
    assert any("our names for the clusters" in note for note in imported.report["notes"])
    assert not imported.report["not_supported"]


def test_an_empty_alias_with_a_separator_names_nothing_that_is_known() -> None:
    config = {"connector.class": f"{MIRROR}MirrorSourceConnector", **NAMELESS}
    with pytest.raises(InputError, match=r"comes without source\.cluster\.alias"):
        read("source.json", json.dumps({"name": "m", "config": config}))


@pytest.mark.parametrize("as_json", [False, True])
def test_a_resource_of_strimzi_that_is_not_read_is_called_by_its_name(as_json: bool) -> None:
    resource = {"apiVersion": "kafka.strimzi.io/v1beta2", "kind": "KafkaMirrorMaker", "spec": {}}
    text = "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaMirrorMaker\nspec: {}\n"
    with pytest.raises(InputError, match=r"resource of Strimzi \(kind KafkaMirrorMaker\).*expand"):
        read("mirror.yaml", json.dumps(resource, indent=2) if as_json else text)


def dedicated(lines: str, source: str = "a", target: str = "b") -> Imported:
    ends = f"clusters = {source}, {target}\n"
    ends += f"{source}.bootstrap.servers = a:1\n{target}.bootstrap.servers = b:1\n"
    return read("mm2.properties", f"{ends}{source}->{target}.enabled = true\n{lines}\n")


@pytest.mark.parametrize(
    ("value", "carried", "hint"),
    [
        ("orders.*   # all orders", "orders.*   # all orders", "a comment is a line of its own"),
        ('"orders.*,payments"', '"orders.*', "quotes are part of the pattern"),
        ("orders payments", "orders payments", "blanks within a pattern count"),
    ],
)
def test_a_pattern_that_no_name_can_match_is_carried_and_noted_by_line(
    value: str, carried: str, hint: str, tmp_path: Path
) -> None:
    imported = dedicated(f"a->b.topics = {value}")
    assert loaded(imported, tmp_path).flow("a->b").settings.topics[0] == carried
    (note, *_) = [note for note in imported.report["notes"] if "matches no legal name" in note]
    assert note.startswith(f"mm2.properties, line 5: a->b.topics holds {carried!r}")
    assert note.endswith(hint) or hint in note


def test_names_of_groups_may_hold_anything() -> None:
    imported = dedicated("a->b.groups = my group")
    assert not [note for note in imported.report["notes"] if "no legal name" in note]


@pytest.mark.parametrize(("source", "target"), [("dc-west", "dc"), ("dc", "dc-west")])
def test_names_stay_whatever_the_separator_and_the_aliases(
    source: str, target: str, tmp_path: Path
) -> None:
    policy = f"replication.policy.class = {MIRROR}IdentityReplicationPolicy"
    lines = f"{policy}\nreplication.policy.separator = -\n{target}->{source}.enabled = true"
    imported = dedicated(lines, source, target)
    flow = loaded(imported, tmp_path).flow(f"{source}->{target}")
    assert flow.target_topic("orders") == "orders"
    assert [note for note in imported.report["notes"] if "arrive as dc-west.heartbeats" in note]


def test_the_policy_of_awss_guides_keeps_names(tmp_path: Path) -> None:
    policy = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
    imported = dedicated(f"replication.policy.class = {policy}")
    assert loaded(imported, tmp_path).flow("a->b").target_topic("orders") == "orders"


def test_a_pattern_of_java_alone_is_left_out_by_itself(tmp_path: Path) -> None:
    imported = dedicated(r"a->b.topics = orders, (?i)pay.*, (x)\\1")
    settings = loaded(imported, tmp_path).flow("a->b").settings
    assert (settings.topics, settings.paused) == (("orders",), False)
    (row,) = imported.report["not_supported"]
    assert (row["line"], row["key"]) == (5, "a->b.topics")
    assert "write '(?i:pay.*)' into topics" in row["reason"]
    assert "write another one into topics" in row["reason"]


@pytest.mark.parametrize("key", ["topics", "groups", "config.properties"])
def test_a_flow_that_would_take_more_without_an_exclusion_is_paused(
    key: str, tmp_path: Path
) -> None:
    imported = dedicated(rf"a->b.{key}.exclude = \\p{{Upper}}.*")
    assert loaded(imported, tmp_path).flow("a->b").paused
    (row,) = imported.report["not_supported"]
    assert "write '[A-Z].*' into" in row["reason"] and "take paused away" in row["reason"]


CLASSES = {
    "topic.filter.class": MIRROR + "DefaultTopicFilter",
    "group.filter.class": MIRROR + "DefaultGroupFilter",
    "config.property.filter.class": MIRROR + "DefaultConfigPropertyFilter",
    "replication.policy.class": MIRROR + "DefaultReplicationPolicy",
    "transforms": "",
}


@pytest.mark.parametrize("prefix", ["", "a->b."])
@pytest.mark.parametrize("key", CLASSES)
def test_a_flow_that_would_take_more_without_a_class_is_paused(
    key: str, prefix: str, tmp_path: Path
) -> None:
    """It was written enabled, with all topics: what the class had left out was mirrored."""
    imported = dedicated(f"{prefix}{key} = com.example.Ours")
    assert loaded(imported, tmp_path).flow("a->b").paused
    (row,) = imported.report["not_supported"]
    assert row["key"] == f"{prefix}{key}" and "take paused away" in row["reason"]
    own = dedicated(f"{prefix}{key} = {CLASSES[key]}")
    assert not loaded(own, tmp_path).flow("a->b").paused and not own.report["not_supported"]


@pytest.mark.parametrize(("kind", "paused"), [("Source", True), ("Checkpoint", False)])
def test_only_what_the_records_pass_pauses_the_flow(
    kind: str, paused: bool, tmp_path: Path
) -> None:
    def connector(one: str) -> dict[str, Any]:
        ends = {**ENDS, "source.cluster.alias": "a", "target.cluster.alias": "b"}
        config = {**ends, "connector.class": f"{MIRROR}Mirror{one}Connector"}
        return {"name": one, "config": {**config, **({"transforms": "t"} if one == kind else {})}}

    imported = read("c.json", json.dumps([connector("Source"), connector("Checkpoint")]))
    assert loaded(imported, tmp_path).flow("a->b").paused is paused
    assert [row["key"] for row in imported.report["not_supported"]] == ["transforms"]


def test_mirrormaker_1_leaves_out_such_a_pattern_too() -> None:
    files = [
        SourceFile("consumer.properties", b"bootstrap.servers = a:1\ngroup.id = m"),
        SourceFile("producer.properties", b"bootstrap.servers = b:1\nacks = all"),
    ]
    imported = import_files(files, Options(whitelist="(?i)orders,payments"))
    assert imported.topology["flows"]["source->target"]["topics"] == ["payments"]
    assert "write '(?i:orders)'" in imported.report["not_supported"][0]["reason"]


def certificate(name: str) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime(2026, 1, 1, tzinfo=timezone.utc)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1, begin, begin)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def test_certificates_joined_in_one_line_get_their_lines_back(tmp_path: Path) -> None:
    pem = certificate("one") + certificate("two")
    joined = " \\\n".join(pem.splitlines())  # as in Kafka's documentation of PEM values
    tls = "security.protocol = SSL\nb.ssl.truststore.type = PEM"
    imported = dedicated(f"b.{tls}\nb.ssl.truststore.certificates = {joined}")
    cluster = loaded(imported, tmp_path).clusters["b"]
    assert cluster.security.ca_file == pem
    assert len(x509.load_pem_x509_certificates(cluster.security.ca_file.encode())) == 2
    text = (tmp_path / "mirrorlake.yml").read_text(encoding="utf-8")
    assert "      ca_file: |\n        -----BEGIN CERTIFICATE-----\n" in text
