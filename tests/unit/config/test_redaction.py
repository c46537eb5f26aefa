"""No secret leaves in a topology that is told to others, wherever one may stand in it."""

import json
from pathlib import Path

import pytest

from mirrorlake.config.redaction import HIDDEN, redacted, topology_hash, without_secrets
from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.errors import TopologyError

TOPOLOGY = """
clusters:
  east:
    bootstrap_servers: "broker:9093"
    security:
      {protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: mirror, password: hunter-1,
       ca_file: ca.pem, certificate_file: "-----BEGIN CERTIFICATE-----\\nhunter-2",
       key_file: "-----BEGIN PRIVATE KEY-----\\nhunter-3",
       key_password: hunter-4}
    producer: {linger.ms: 7}
  west:
    bootstrap_servers: "broker:9093"
    security:
      {protocol: SASL_SSL, mechanism: OAUTHBEARER, token_endpoint: "https://me:hunter-5@login/token?key=hunter-6",
       client_id: us, client_secret: "${secret:kafka/west}", extensions: {tenant: hunter-7}}
lake:
  path: "s3a://key:hunter-8@bucket/lake?sig=hunter-9"
  storage:
    {AZURE_STORAGE_ACCOUNT_KEY: hunter-11, account_key: hunter-12,
     azure_storage_access_key: hunter-13,
     azure_storage_sas_key: hunter-14, aws_sse_customer_key_base64: hunter-15,
     google_service_account_key: hunter-16, aws_secret_access_key: "${env:KEY}"}
defaults: {topics: ["orders.*"]}
flows: {east->west: {produce_tasks: 3}}
tracking: {uri: "https://me:hunter-10@mlflow:5000"}
"""


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    path = tmp_path / "mirrorlake.yml"
    path.write_text(TOPOLOGY, encoding="utf-8")
    return load_topology(path)


def test_nothing_secret_is_left(topology: Topology) -> None:
    text = json.dumps(redacted(topology))
    assert TOPOLOGY.count("hunter") == 16 and "hunter" not in text


def test_what_explains_a_run_is_left(topology: Topology) -> None:
    found = redacted(topology)
    assert found["clusters"]["east"]["security"]["password"] == HIDDEN
    assert found["clusters"]["east"]["security"]["username"] == "mirror"
    assert found["clusters"]["east"]["producer"] == {"linger.ms": 7}
    assert found["clusters"]["west"]["security"]["client_secret"] == "${secret:kafka/west}"
    assert found["flows"]["east->west"]["produce_tasks"] == 3
    assert found["lake"]["path"] == f"s3a://{HIDDEN}@bucket/lake?{HIDDEN}"
    assert found["lake"]["storage"]["aws_secret_access_key"] == "${env:KEY}"
    assert found["lake"]["storage"]["account_key"] == HIDDEN


def test_the_hash_follows_what_is_said_and_not_the_secrets(
    topology: Topology, tmp_path: Path
) -> None:
    def hashed(text: str) -> str:
        (tmp_path / "mirrorlake.yml").write_text(text, encoding="utf-8")
        return topology_hash(load_topology(tmp_path / "mirrorlake.yml"))

    assert hashed(TOPOLOGY) == topology_hash(topology)
    assert hashed(TOPOLOGY.replace("hunter-1,", "other,")) == topology_hash(topology)
    assert hashed(TOPOLOGY.replace("hunter-11,", "rotated,")) == topology_hash(topology)
    assert hashed(TOPOLOGY.replace("produce_tasks: 3", "produce_tasks: 4")) != topology_hash(
        topology
    )


@pytest.mark.parametrize(
    "text", ["orders.*", "broker-1:9093,broker-2:9093", "/data/lake", "./lake", "main"]
)
def test_plain_texts_stay(text: str) -> None:
    assert without_secrets(text) == text


def test_the_block_is_known_by_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "mirrorlake.yml"
    path.write_text(TOPOLOGY.replace("tracking: {uri", "tracking: {url"), encoding="utf-8")
    with pytest.raises(TopologyError, match="unknown key tracking.url; did you mean uri"):
        load_topology(path)
