"""What `ops/` runs is what the command line takes, and its parts fit together."""

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import cast

import kubernetes_validate
import pytest
import typer
import yaml
from typer.core import TyperGroup

from mirrorlake.cli.main import app
from mirrorlake.config.topology import load_topology
from mirrorlake.extras import EXTRAS
from tests.support.manifests import FOLDER, built, check, container, manifest, pod

OPS = FOLDER.parent
DOCKERFILE = (OPS / "Dockerfile").read_text(encoding="utf-8")
UNIT = configparser.ConfigParser(strict=False, interpolation=None)
UNIT.optionxform = str  # type: ignore[assignment,method-assign]
UNIT.read_string((OPS / "systemd" / "mirrorlake.service").read_text(encoding="utf-8"))


def checked(words: list[str]) -> dict[str, object]:
    """The parameters of a `run` of ours; a word that it does not take fails."""
    at = words.index("run")
    group = cast("TyperGroup", typer.main.get_command(app))
    outer = group.make_context("mirrorlake", words[1 : at + 1])
    inner = group.commands["run"].make_context("run", words[at + 1 :], parent=outer)
    return {**outer.params, **inner.params}


def test_the_pod_runs_a_command_that_there_is() -> None:
    asked = checked(container()["command"])
    assert asked["metrics"] == "0.0.0.0:9404"
    assert str(asked["config"]) == "/etc/mirrorlake/mirrorlake.yml"


@pytest.mark.parametrize("name", ["deployment.yaml", "secret.yaml"])
def test_kubernetes_takes_the_manifests(name: str) -> None:
    check(manifest(name))


def test_a_misspelled_probe_is_refused() -> None:
    document = manifest("deployment.yaml")
    document["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="livenesProbe"):
        check(document)


def test_the_probes_go_where_metrics_are_served() -> None:
    (port,) = container()["ports"]
    assert port == {"name": "metrics", "containerPort": 9404}
    probes = {
        kind: container()[f"{kind}Probe"]["httpGet"]
        for kind in ("startup", "liveness", "readiness")
    }
    assert all(probe["port"] == port["name"] for probe in probes.values())
    assert [probes[kind]["path"] for kind in probes] == ["/healthz", "/healthz", "/readyz"]
    notes = manifest("deployment.yaml")["spec"]["template"]["metadata"]["annotations"]
    assert notes["prometheus.io/port"] == str(port["containerPort"])


def test_a_collector_scrapes_where_the_pod_serves_and_names_only_what_it_has() -> None:
    text = (OPS / "opentelemetry" / "collector.yml").read_text(encoding="utf-8")
    collector = yaml.safe_load(text)
    (scrape,) = collector["receivers"]["prometheus"]["config"]["scrape_configs"]
    (port,) = container()["ports"]
    assert scrape["static_configs"] == [{"targets": [f"mirrorlake:{port['containerPort']}"]}]
    for kind, names in collector["service"]["pipelines"]["metrics"].items():
        assert set(names) <= collector[kind].keys()
    (named,) = re.findall(r'otlp: "(http://collector:\d+)"', text)
    listens = collector["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    assert named.rpartition(":")[2] == listens.rpartition(":")[2]


def test_the_pods_stand_by_for_each_other() -> None:
    spec = manifest("deployment.yaml")["spec"]
    assert spec["replicas"] == 2
    assert load_topology(FOLDER / "mirrorlake.yml").availability == "kafka"
    rolling = spec["strategy"]["rollingUpdate"]
    assert rolling["maxUnavailable"] < spec["replicas"], "one of them works at any moment"
    (spread,) = pod()["topologySpreadConstraints"]
    assert spread["labelSelector"] == spec["selector"]


def test_the_pod_has_no_rights_that_it_does_not_need() -> None:
    of_pod, own = pod()["securityContext"], container()["securityContext"]
    assert of_pod["runAsNonRoot"] and of_pod["runAsUser"] == of_pod["fsGroup"] == 20001
    assert own["readOnlyRootFilesystem"] and own["capabilities"] == {"drop": ["ALL"]}
    assert own["allowPrivilegeEscalation"] is False
    assert "USER 20001:20001" in DOCKERFILE


def test_what_is_mounted_is_what_the_topology_file_reads() -> None:
    mounts = {mount["name"]: mount for mount in container()["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in pod()["volumes"]}
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    generated = manifest("kustomization.yaml")["configMapGenerator"]
    assert volumes["topology"]["configMap"]["name"] == generated[0]["name"]
    assert generated[0]["files"] == ["mirrorlake.yml"]
    secret = manifest("secret.yaml")
    assert volumes["kafka"]["secret"] == {
        "secretName": secret["metadata"]["name"],
        "defaultMode": 0o440,
    }
    environment = {one["name"]: one["value"] for one in container()["env"]}
    scope = Path(mounts["kafka"]["mountPath"]).relative_to(environment["MIRRORLAKE_SECRETS"])
    text = (FOLDER / "mirrorlake.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{secret:([^}]+)\}", text)) == {
        f"{scope}/{key}" for key in secret["stringData"]
    }
    assert environment["HOME"] == mounts["tmp"]["mountPath"]


def test_the_topology_file_is_one() -> None:
    topology = load_topology(FOLDER / "mirrorlake.yml")
    assert topology.lake.checkpoints == "/tmp/checkpoints"


def test_the_kustomization_has_all_files() -> None:
    kustomization = manifest("kustomization.yaml")
    assert {*kustomization["resources"], "kustomization.yaml", "mirrorlake.yml"} == {
        path.name for path in FOLDER.iterdir()
    }
    for name in kustomization["resources"]:
        assert {"apiVersion", "kind", "metadata", "spec" if name != "secret.yaml" else "type"} <= (
            manifest(name).keys()
        )
    assert kustomization["images"][0]["name"] == container()["image"]


def test_kubectl_builds_what_kubernetes_takes() -> None:
    """The pod mounts the ConfigMap by the name that its content gives it."""
    documents = {document["kind"]: document for document in built(FOLDER)}
    assert documents.keys() == {"ConfigMap", "Deployment", "Secret"}
    for document in documents.values():
        check(document)
    spec = documents["Deployment"]["spec"]["template"]["spec"]
    (named,) = [one["configMap"]["name"] for one in spec["volumes"] if "configMap" in one]
    assert named == documents["ConfigMap"]["metadata"]["name"] != "mirrorlake"
    text = (FOLDER / "mirrorlake.yml").read_text(encoding="utf-8")
    assert documents["ConfigMap"]["data"] == {"mirrorlake.yml": text}
    assert spec["containers"][0]["image"].startswith("registry.example.org/mirrorlake:")


def test_systemd_takes_the_unit() -> None:
    """It only misses the command, which is installed with the package."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    unit = OPS / "systemd" / "mirrorlake.service"
    done = subprocess.run([program, "verify", str(unit)], capture_output=True, check=False)
    said = done.stderr.decode().splitlines()
    missing = "Command /opt/mirrorlake/bin/mirrorlake is not executable: No such file or directory"
    assert [line.partition(": ")[2] for line in said if unit.name in line] == [missing]


def test_the_unit_runs_a_command_that_there_is_and_ends_it_alone() -> None:
    service = UNIT["Service"]
    asked = checked(shlex.split(service["ExecStart"]))
    assert asked["metrics"] == "127.0.0.1:9404"
    assert service["KillMode"] == "mixed", "Spark's Java gets no SIGTERM of its own"
    assert int(service["TimeoutStopSec"]) == pod()["terminationGracePeriodSeconds"]
    assert service["User"] != "root" and service["WorkingDirectory"].endswith(
        service["StateDirectory"]
    )


def test_the_image_installs_extras_that_there_are_and_java_for_spark_alone() -> None:
    (extras,) = re.findall(r"^ARG EXTRAS=(.*)$", DOCKERFILE, re.MULTILINE)
    assert {*extras.split(",")} <= EXTRAS.keys() and "metrics" in extras
    (line,) = re.findall(r"^RUN case .*?esac$", DOCKERFILE, re.MULTILINE | re.DOTALL)
    assert "*,spark,*|*,all,*)" in line and DOCKERFILE.count("apt-get install") == 1
    for words in re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE):
        assert all((OPS.parent / word).exists() for word in words.split())


def test_what_the_image_copies_is_what_its_build_is_sent() -> None:
    ignored = (OPS.parent / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    assert "*" in ignored and sent == {word for words in copied for word in words.split()}
    links = [path for word in sent for path in (OPS.parent / word).rglob("*") if path.is_symlink()]
    assert links, "the package has a manifest of ops/"
    for link in links:
        lies = link.resolve().relative_to(OPS.parent.resolve())
        assert any(lies.is_relative_to(word) for word in sent), link


def test_no_secret_stands_in_a_manifest() -> None:
    for path in FOLDER.glob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            values = (document.get("stringData") or {}).values()
            assert set(values) <= {"change-me"}, path


def test_a_word_that_a_command_does_not_take_is_seen() -> None:
    with pytest.raises(Exception, match="(?i)no such option"):
        checked(["mirrorlake", "run", "--metric-port", "1"])
