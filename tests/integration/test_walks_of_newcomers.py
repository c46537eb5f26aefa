"""New users get from README to what they want without reading code: an operator with a resource of
Strimzi, on a laptop and in Kubernetes, and a data engineer with Jupyter. What they type is what the
pages say, word for word. A platform engineer's way is `test_walk_of_a_workspace.py`."""

import re
import shutil
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from mirrorlake.devtools.local.ports import free_ports
from tests.support.kafka import create_topic, numbered, write
from tests.support.manifests import built
from tests.support.prometheus import answer
from tests.support.secure import EVERYTHING, PASSWORD, SecureClusters, grant, secure_clusters
from tests.support.waiting import until
from tests.support.walks import ROOT, arrives, block_of, local_clusters, mapped, running, typed

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


def test_an_operator_who_goes_to_kubernetes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as no cluster of Kubernetes is needed: its Secrets are folders here, and its pods two
    processes, which do what the manifest says that is built of what `import` has written."""
    beside = tmp_path / "to-west"
    file = beside / "mirrorlake.yml"
    with secure_clusters(tmp_path / "secure") as clusters, ExitStack() as one, ExitStack() as two:
        for name in ("east", "west"):
            grant(clusters.admin(name), EVERYTHING)
        create_topic(clusters.open_door("east"), "orders")
        write(clusters.open_door("east"), "orders", numbered(100))
        in_kubernetes(tmp_path, clusters)
        page = "ops/README.md"
        typed(tmp_path, "\n".join(block_of(page, "kubectl -n streams get kafkamirrormaker2")))
        text = file.read_text(encoding="utf-8")
        for told, here in (("s3://change-me/lake", "lake"), ("/tmp/checkpoints", "checkpoints")):
            assert told in text
            text = text.replace(told, str(tmp_path / here))
        file.write_text(text, encoding="utf-8")
        spec = next(each for each in built(beside) if each["kind"] == "Deployment")["spec"]
        secrets = mounted(spec["template"]["spec"], tmp_path / "kubernetes", tmp_path / "pod")
        monkeypatch.setenv("MIRRORLAKE_SECRETS", str(secrets))
        typed(tmp_path, f"mirrorlake -c {file} doctor")
        (container,) = spec["template"]["spec"]["containers"]
        assert spec["replicas"] == 2
        for pod, port in zip((one, two), free_ports(2), strict=True):
            folder = tmp_path / f"pod-{port}"
            folder.mkdir()
            at = {"/etc/mirrorlake/mirrorlake.yml": str(file), "0.0.0.0:9404": f"127.0.0.1:{port}"}
            words = [at.get(word, word) for word in container["command"]]
            pod.enter_context(running(folder, words, signal.SIGTERM))
            until(lambda: answer(port, "/readyz")[0] == 200, "it is ready", 120)  # noqa: B023
        arrives(beside, "orders", 100)
        (line,) = block_of(page, "kubectl -n streams exec")
        status = line.partition(" -- ")[2].replace("/etc/mirrorlake/mirrorlake.yml", str(file))
        said = typed(tmp_path, status)
        assert "works" in said and "stands by" in said, said
        one.close()
        write(clusters.open_door("east"), "orders", numbered(50))
        arrives(beside, "orders", 150)


def mounted(pod: Mapping[str, Any], held: Path, root: Path) -> Path:
    """Mount the Secrets of a pod, which lie in folders of `held`, where it says, for this process's
    user alone, who is their owner here (`test_pod.py` has them as root's); returns the folder that
    MIRRORLAKE_SECRETS names."""
    (container,) = pod["containers"]
    volumes = {each["name"]: each for each in pod["volumes"]}
    for mount in container["volumeMounts"]:
        if (secret := volumes[mount["name"]].get("secret")) is not None:
            place = root / mount["mountPath"].strip("/")
            shutil.copytree(held / secret["secretName"], place)
            for path in place.iterdir():
                path.chmod(secret["defaultMode"] & 0o700)
    environment = {each["name"]: str(each.get("value")) for each in container["env"]}
    return root / environment["MIRRORLAKE_SECRETS"].strip("/")


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
