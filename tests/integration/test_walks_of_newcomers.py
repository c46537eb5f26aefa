"""New users get from README to what they want without reading code: an operator with a resource of
Strimzi, and a data engineer with Jupyter. What they type is what the pages say, word for word. A
platform engineer's way is `test_walk_of_a_workspace.py`."""

import re
from pathlib import Path

import pytest
import yaml

from tests.support.kafka import create_topic, numbered, write
from tests.support.secure import EVERYTHING, PASSWORD, SecureClusters, grant, secure_clusters
from tests.support.walks import ROOT, block_of, local_clusters, mapped, typed

pytestmark = pytest.mark.slow

#: A program that answers like kubectl where docs/import.md asks it.
KUBECTL = """#!/bin/sh
here=$(dirname "$0")/../kubernetes
case "$3 $4" in
  "get kafkamirrormaker2") cat "$here/$5.yaml" ;;
  "get secret") cat "$here/$5/$(printf %s "$7" | sed 's/.*"\\(.*\\)".*/\\1/')" ;;
  *) exit 1 ;;
esac
"""


def test_an_operator_with_a_resource_of_strimzi(tmp_path: Path) -> None:
    with secure_clusters(tmp_path / "secure") as clusters:
        for name in ("east", "west"):
            grant(clusters.admin(name), EVERYTHING)
        create_topic(clusters.open_door("east"), "orders")
        write(clusters.open_door("east"), "orders", numbered(100))
        in_kubernetes(tmp_path, clusters)
        lines = block_of("docs/import.md", "export MIRRORLAKE_SECRETS")
        assert lines[-1] == "mirrorlake verify"
        said = typed(tmp_path, "\n".join(lines))
        assert re.search(r"10\d of 10\d records proven by content .*no difference", said), said
        left = [path.stat().st_mode & 0o077 for path in (tmp_path / "secrets").rglob("*")]
        assert not any(left), "nobody else may read the secrets"


def in_kubernetes(folder: Path, clusters: SecureClusters) -> None:
    """The resource, and the Secrets that it names."""
    held = folder / "kubernetes"
    read = (clusters.folder / "client.crt", clusters.folder / "client.key")
    authority = clusters.authority.file.read_text(encoding="utf-8")
    secrets = {
        "mirror-east/password": PASSWORD,
        "east-cluster-ca-cert/ca.crt": authority,
        "west-cluster-ca-cert/ca.crt": authority,
        "mirror/user.crt": read[0].read_text(encoding="utf-8"),
        "mirror/user.key": read[1].read_text(encoding="utf-8"),
    }
    for name, value in secrets.items():
        path = held / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value, encoding="utf-8")
    (held / "to-west.yaml").write_text(yaml.safe_dump(resource(clusters)), encoding="utf-8")
    kubectl = folder / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(KUBECTL, encoding="utf-8")
    kubectl.chmod(0o755)


def resource(clusters: SecureClusters) -> dict[str, object]:
    """A KafkaMirrorMaker2 between them: SCRAM and TLS at the source, a certificate at the
    target."""
    trusted = {
        alias: {
            "trustedCertificates": [
                {"secretName": f"{alias}-cluster-ca-cert", "certificate": "ca.crt"}
            ]
        }
        for alias in ("east", "west")
    }
    password = {"secretName": "mirror-east", "password": "password"}
    login = {"type": "scram-sha-512", "username": "mirror", "passwordSecret": password}
    own = {"secretName": "mirror", "certificate": "user.crt", "key": "user.key"}
    target = {
        "alias": "west",
        "bootstrapServers": clusters.doors["west"]["MTLS"],
        "tls": trusted["west"],
        "authentication": {"type": "tls", "certificateAndKey": own},
    }
    source = {
        "alias": "east",
        "bootstrapServers": clusters.doors["east"]["SASLTLS"],
        "tls": trusted["east"],
        "authentication": login,
    }
    mirror = {"source": source, "sourceConnector": {}, "topicsPattern": "orders.*"}
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "to-west", "namespace": "streams"},
        "spec": {"version": "4.1.1", "replicas": 1, "target": target, "mirrors": [mirror]},
    }


def test_a_data_engineer_with_jupyter(tmp_path: Path) -> None:
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    write, convert = block_of("docs/notebooks.md", "python -m mirrorlake.notebook.jupyter")
    with local_clusters(tmp_path, "--load"):
        typed(tmp_path, "mirrorlake run --once")
        assert mapped(tmp_path, "orders", 1)
        typed(tmp_path, write.replace("mirrorlake-demo/lake", "lake"))
        typed(tmp_path, convert)
        for number in ("02_investigate_latency", "03_translate_offsets", "05_audit"):
            typed(tmp_path, convert.replace("01_quickstart", number))
        page = (tmp_path / "jupyter" / "01_quickstart.html").read_text(encoding="utf-8")
        assert "healthy" in page or "orders" in page
