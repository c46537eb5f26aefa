"""Strimzi's KafkaMirrorMaker2: its own shapes of v1beta2 and v1, as files and as kubectl prints
them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mirrorlake.config.security import is_pem, with_line_breaks
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError
from mirrorlake.kafka.secrets import resolved
from mirrorlake.mm2.importer.document import topology_text
from mirrorlake.mm2.importer.entries import SourceFile
from mirrorlake.mm2.importer.read import Imported, import_files

SAMPLES = Path(__file__).parent / "samples" / "strimzi"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def read(content: str, name: str = "mirror.yaml") -> Imported:
    return import_files([SourceFile(name, content.encode())])


def changed(name: str, **parts: Any) -> str:
    """The sample with other parts of its spec; a part that is None is taken away."""
    resource = yaml.safe_load(sample(name))
    resource["spec"] = {**resource["spec"], **parts}
    resource["spec"] = {key: part for key, part in resource["spec"].items() if part is not None}
    return yaml.safe_dump(resource, sort_keys=False)


def cluster(**parts: Any) -> dict[str, Any]:
    """What becomes of a target of v1 with these parts."""
    target = {"alias": "west", "bootstrapServers": "w:1", **parts}
    clusters: dict[str, Any] = read(changed("pair.v1.yaml", target=target)).topology["clusters"]
    return dict(clusters["west"])


def reasons(imported: Imported, verdict: str) -> dict[str, str]:
    return {row["key"]: row["reason"] for row in imported.report[verdict]}


def test_a_resource_of_v1_becomes_the_flow_that_strimzi_runs() -> None:
    topology = read(sample("pair.v1.yaml")).topology
    assert topology["clusters"] == {
        "east": {
            "bootstrap_servers": "east-kafka-bootstrap:9093",
            "security": {
                "protocol": "SASL_SSL",
                "mechanism": "SCRAM-SHA-512",
                "username": "mirror",
                "password": "${secret:mirror-east/password}",
            },
        },
        "west": {
            "bootstrap_servers": "west-kafka-bootstrap:9093",
            "security": {
                "protocol": "SSL",
                "ca_file": "${secret:west-cluster-ca-cert/ca.crt}\n${secret:proxy-ca/tls.crt}",
                "certificate_file": "${secret:mirror/user.crt}",
                "key_file": "${secret:mirror/user.key}",
            },
            "producer": {"linger.ms": 20},
        },
    }
    assert topology["flows"] == {
        "east->west": {
            "offset_syncs_topic_replication_factor": 3,
            "sync_topic_acls_enabled": False,
            "refresh_topics_interval_seconds": 600,
            "topics": ["orders.*", "payments|refunds"],
            "topics_exclude": [r"orders\.audit"],
            "groups": [".*"],
            "sync_group_offsets_enabled": True,
            "refresh_groups_interval_seconds": 300,
        }
    }


def test_a_resource_of_v1beta2_becomes_the_flow_that_strimzi_runs() -> None:
    imported = read(sample("pair.v1beta2.yaml"))
    assert imported.topology["clusters"] == {
        "east": {"bootstrap_servers": "east-kafka-bootstrap:9092"},
        "west": {"bootstrap_servers": "west-kafka-bootstrap:9092"},
    }
    flow = imported.topology["flows"]["east->west"]
    assert (flow["topics"], flow["topics_exclude"]) == ([".*"], ["audit"])
    assert (flow["groups"], flow["groups_exclude"]) == (["app-.*"], ["app-dev"])
    assert (flow["policy"], flow["emit_heartbeats_enabled"]) == ("identity", False)
    assert not imported.mounts
    skipped = reasons(imported, "not_needed")
    assert "groupsExcludePattern" in skipped["spec.mirrors[0].groupsBlacklistPattern"]
    assert "no mirror reads it" in skipped["spec.clusters[2]"]
    assert not {"spec.clusters[0]", "spec.clusters[1]"} & skipped.keys()


@pytest.mark.parametrize("name", ["pair.v1.yaml", "pair.v1beta2.yaml"])
def test_what_kubectl_prints_is_the_same_resource(name: str, tmp_path: Path) -> None:
    resource = yaml.safe_load(sample(name))
    resource["metadata"]["annotations"] = {"last-applied": json.dumps(resource)}
    resource["status"] = {"observedGeneration": 3, "conditions": [{"type": "Ready"}]}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [other, resource]}
    printed = [
        json.dumps(resource),
        json.dumps(resource, indent="\t"),
        json.dumps(listed, indent=4),
        yaml.safe_dump(listed),
        f"---\n{yaml.safe_dump(other)}---\n{sample(name)}",
    ]
    first = read(sample(name))
    for text in printed:
        imported = read(text)
        assert imported.topology == first.topology
        assert imported.mounts == first.mounts
    path = tmp_path / "mirrorlake.yml"
    text = topology_text(first.topology, [name], first.variables, first.mounts)
    path.write_text(text, encoding="utf-8")
    assert load_topology(path).flow("east->west").settings.topics


def leaves(part: Any, path: str) -> Iterator[str]:
    """The paths of all that a part of a resource says."""
    if isinstance(part, dict) and part:
        for name, value in part.items():
            yield from leaves(value, f"{path}.{name}")
    elif isinstance(part, list) and part:
        for at, value in enumerate(part):
            yield from leaves(value, f"{path}[{at}]")
    else:
        yield path


@pytest.mark.parametrize("name", ["pair.v1.yaml", "pair.v1beta2.yaml"])
def test_every_field_of_a_spec_has_a_row_of_its_own_or_of_the_part_it_is_in(name: str) -> None:
    report = read(sample(name)).report
    rows = {
        row["key"] for kind in ("carried", "not_needed", "not_supported") for row in report[kind]
    }
    rows -= {f"spec.mirrors[0].{kind}Connector" for kind in ("source", "checkpoint", "heartbeat")}
    for path in leaves(yaml.safe_load(sample(name))["spec"], "spec"):
        assert any(path == row or path.startswith((f"{row}.", f"{row}[")) for row in rows), path


def test_rows_name_path_and_line_once() -> None:
    imported = read(sample("pair.v1.yaml"))
    rows = [row for name in ("carried", "not_needed") for row in imported.report[name]]
    places = [(row["line"], row["key"]) for row in rows]
    assert len(places) == len(set(places))
    lines = sample("pair.v1.yaml").splitlines()
    for line, key in places:
        _, config, setting = key.partition(".config.")
        assert f"{setting if config else key.rpartition('.')[2]}:" in lines[line - 1]
    assert set(reasons(imported, "not_supported")) == {
        "spec.target.tls.trustedCertificates[0].pattern",
        "spec.mirrors[0].source.trustedCertificates",
        "spec.rack",
    }
    keys = {key for _, key in places}
    assert {"spec.version", "spec.replicas", "spec.resources", "spec.target.groupId"} <= keys
    assert "spec.mirrors[0].source.authentication.username" in keys
    assert "spec.mirrors[0].sourceConnector.autoRestart" in keys


def test_each_secret_to_mount_is_noted_with_its_keys_and_namespace() -> None:
    imported = read(sample("pair.v1.yaml"))
    assert imported.mounts == {
        "mirror-east": ["password"],
        "west-cluster-ca-cert": ["ca.crt"],
        "proxy-ca": ["tls.crt"],
        "mirror": ["user.crt", "user.key"],
    }
    notes = [note for note in imported.report["notes"] if note.startswith("mount the Secret")]
    assert len(notes) == 4
    assert all("namespace streams" in note and "MIRRORLAKE_SECRETS" in note for note in notes)
    assert not imported.variables
    head = topology_text(imported.topology, ["m.yaml"], imported.variables, imported.mounts)
    assert "#   mirror  (user.crt, user.key)" in head


@pytest.mark.parametrize(
    ("kind", "mechanism"), [("plain", "PLAIN"), ("scram-sha-256", "SCRAM-SHA-256")]
)
def test_a_login_by_password(kind: str, mechanism: str) -> None:
    secret = {"secretName": "west", "password": "pw.txt"}
    login = {"type": kind, "username": 'a "quoted" \\ name', "passwordSecret": secret}
    assert cluster(authentication=login)["security"] == {
        "protocol": "SASL_PLAINTEXT",
        "mechanism": mechanism,
        "username": 'a "quoted" \\ name',
        "password": "${secret:west/pw.txt}",
    }


OAUTH = {
    "type": "oauth",
    "tokenEndpointUri": "https://login.example.com/token",
    "clientId": "mirror",
    "clientSecret": {"secretName": "west-oauth", "key": "secret"},
    "scope": "kafka",
    "tlsTrustedCertificates": [{"secretName": "login-ca", "certificate": "ca.crt"}],
}


def test_a_login_by_token() -> None:
    target = {"alias": "west", "bootstrapServers": "w:1", "tls": {}, "authentication": OAUTH}
    imported = read(changed("pair.v1.yaml", target=target))
    assert imported.topology["clusters"]["west"]["security"] == {
        "protocol": "SASL_SSL",
        "mechanism": "OAUTHBEARER",
        "token_endpoint": "https://login.example.com/token",
        "client_id": "mirror",
        "client_secret": "${secret:west-oauth/secret}",
        "scope": "kafka",
    }
    refused = reasons(imported, "not_supported")
    assert "authorities" in refused["spec.target.authentication.tlsTrustedCertificates"]


def test_a_token_that_is_given_is_no_login() -> None:
    login = {"type": "oauth", "accessToken": {"secretName": "west", "key": "token"}}
    target = {"alias": "west", "bootstrapServers": "w:1", "authentication": login}
    imported = read(changed("pair.v1.yaml", target=target))
    given = imported.topology["clusters"]["west"]["security"]
    assert given == {"protocol": "SASL_PLAINTEXT", "mechanism": "OAUTHBEARER"}, "refused by `plan`"
    refused = reasons(imported, "not_supported")
    assert "spec.target.authentication.accessToken" in refused
    assert "client credentials" in refused["spec.target.authentication.type"]


def test_a_type_of_login_that_is_not_known_is_none_without_a_login() -> None:
    login = {"type": "kerberos", "principal": "mirror"}
    target = {"alias": "west", "bootstrapServers": "w:1", "tls": {}, "authentication": login}
    imported = read(changed("pair.v1.yaml", target=target))
    given = imported.topology["clusters"]["west"]["security"]
    assert given == {"protocol": "SASL_SSL", "mechanism": "KERBEROS"}, "refused by `plan`"
    refused = reasons(imported, "not_supported")
    assert "KERBEROS is none of" in refused["spec.target.authentication.type"]
    assert "spec.target.authentication.principal" in refused


def test_a_custom_login_is_what_its_config_says() -> None:
    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="mirror" password="${secrets:streams/west:password}";'
    )
    config = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    provider = "io.strimzi.kafka.KubernetesSecretConfigProvider"
    providers = {"config.providers": "secrets", "config.providers.secrets.class": provider}
    assert cluster(
        tls={}, authentication={"type": "custom", "sasl": True, "config": config}, config=providers
    )["security"] == {
        "protocol": "SASL_SSL",
        "mechanism": "PLAIN",
        "username": "mirror",
        "password": "${secret:west/password}",
    }


@pytest.mark.parametrize(
    ("state", "paused"),
    [
        ({"state": "paused"}, True),
        ({"state": "stopped"}, True),
        ({"pause": False}, None),
        ({"state": "paused", "pause": False}, True),  # Strimzi goes by the state
        ({"state": "running", "pause": True}, None),
    ],
)
def test_a_source_connector_that_stands_is_a_paused_flow(state: Any, paused: bool | None) -> None:
    mirrors = yaml.safe_load(sample("pair.v1.yaml"))["spec"]["mirrors"]
    mirrors[0]["sourceConnector"] |= state
    flow = read(changed("pair.v1.yaml", mirrors=mirrors)).topology["flows"]["east->west"]
    assert flow.get("paused") == paused


def test_a_checkpoint_connector_that_stands_leaves_groups_alone() -> None:
    mirrors = yaml.safe_load(sample("pair.v1.yaml"))["spec"]["mirrors"]
    mirrors[0]["checkpointConnector"]["state"] = "paused"
    flow = read(changed("pair.v1.yaml", mirrors=mirrors)).topology["flows"]["east->west"]
    assert not flow["sync_group_offsets_enabled"]
    assert not flow["emit_checkpoints_enabled"]
    assert "paused" not in flow


@pytest.mark.parametrize(("name", "servers"), [("v1", "own:1"), ("v1beta2", "of-the-cluster:1")])
def test_what_counts_of_a_cluster_and_a_connectors_config(name: str, servers: str) -> None:
    """Since v1 the connector's config is laid over the cluster, before the other way about."""
    spec = yaml.safe_load(sample(f"pair.{name}.yaml"))["spec"]
    spec["mirrors"][0]["sourceConnector"]["config"]["target.cluster.bootstrap.servers"] = "own:1"
    spec["mirrors"][0].pop("checkpointConnector")
    spec["mirrors"][0].pop("heartbeatConnector", None)
    west = spec["target"] if name == "v1" else spec["clusters"][1]
    west["bootstrapServers"] = "of-the-cluster:1"
    imported = read(changed(f"pair.{name}.yaml", **spec))
    assert imported.topology["clusters"]["west"]["bootstrap_servers"] == servers
    assert any("and counts" in why for why in reasons(imported, "not_needed").values())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"mirrors": None}, r"line 1: the resource has no spec.mirrors"),
        ({"mirrors": [{"source": {"alias": "east"}}]}, "no mirror of it has a connector"),
        ({"mirrors": "all"}, r"line \d+: spec.mirrors must be a list"),
        (
            {"mirrors": [{"sourceConnector": {}, "source": {"alias": "east"}}]},
            r"line \d+: spec.mirrors\[0\].source has no bootstrapServers",
        ),
        (
            {"mirrors": [{"sourceConnector": {}, "sourceCluster": "east"}]},
            r"spec.mirrors\[0\].sourceCluster names none of spec.clusters",
        ),
        ({"target": {"alias": ["west"], "bootstrapServers": "w:1"}}, r"alias must be a string"),
        (
            {"target": {"alias": "w", "bootstrapServers": "w:1", "authentication": {}}},
            "authentication has no type",
        ),
    ],
)
def test_what_strimzi_would_refuse_is_named_by_line_and_path(parts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(changed("pair.v1.yaml", **parts))


def test_yaml_that_cannot_be_read_is_named_by_line() -> None:
    with pytest.raises(InputError, match=r"mirror.yaml is not valid YAML in line \d+"):
        read(f"{sample('pair.v1.yaml')}  oh: [no\n")


def test_secrets_of_one_name_in_two_namespaces_are_two_resources() -> None:
    there = yaml.safe_load(sample("pair.v1.yaml"))
    there["metadata"]["namespace"] = "elsewhere"
    there["spec"]["target"]["alias"] = "south"
    there["spec"]["mirrors"][0]["source"]["alias"] = "far"
    text = f"{sample('pair.v1.yaml')}---\n{yaml.safe_dump(there)}"
    with pytest.raises(InputError, match="import each resource alone"):
        read(text)


def test_a_reference_that_a_pod_of_strimzi_shows_is_a_mounted_secret_too() -> None:
    """GET /connectors?expand=info of a pod since v1."""
    mirror = "org.apache.kafka.connect.mirror."
    config = {
        "connector.class": f"{mirror}MirrorSourceConnector",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": "a:1",
        "target.cluster.bootstrap.servers": "b:1",
        "source.cluster.security.protocol": "SSL",
        "source.cluster.ssl.truststore.type": "PEM",
    }

    def shown(certificates: str) -> Imported:
        settings = {**config, "source.cluster.ssl.truststore.certificates": certificates}
        answer = {"m": {"info": {"name": "m", "config": settings}}}
        return read(json.dumps(answer), "connectors.json")

    imported = shown("${strimzisecrets:ns/m-trusted:a.crt}")
    security = imported.topology["clusters"]["a"]["security"]
    assert security["ca_file"] == "${secret:m-trusted/a.crt}"
    assert imported.mounts == {"m-trusted": ["a.crt"]}
    # What is a reference only in part is a value to set, as with every other provider.
    mixed = shown("${strimzisecrets:ns/m-trusted:a.crt}\n-----BEGIN CERTIFICATE-----")
    assert mixed.topology["clusters"]["a"]["security"]["ca_file"] == "${env:A_CA_FILE}"
    assert not mixed.mounts


def test_secrets_that_are_mounted_as_the_notes_say_are_what_clients_get(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = read(sample("pair.v1.yaml"))
    pem = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"
    for secret, keys in imported.mounts.items():
        for key in keys:
            file = tmp_path / secret / key
            file.parent.mkdir(exist_ok=True)
            file.write_text("pw\n" if key == "password" else pem.format(secret), encoding="utf-8")
            file.chmod(0o600)
    monkeypatch.setenv("MIRRORLAKE_SECRETS", str(tmp_path))
    clusters = imported.topology["clusters"]
    assert resolved(clusters["east"]["security"]["password"]) == "pw"
    trusted = resolved(clusters["west"]["security"]["ca_file"])
    assert is_pem(trusted)
    assert with_line_breaks(trusted) == trusted
    assert trusted == (pem.format("west-cluster-ca-cert") + pem.format("proxy-ca")).strip()
