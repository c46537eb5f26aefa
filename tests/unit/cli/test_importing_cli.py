"""`mirrorlake import`: what goes to stdout, to stderr and to the file, and how it ends."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from mirrorlake.cli import importing
from mirrorlake.cli.context import Context
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError
from tests.support.manifests import built, check

SAMPLES = Path(__file__).parents[1] / "mm2" / "importer" / "samples"
OPS = Path(__file__).parents[3] / "ops" / "kubernetes"
app = typer.Typer()
app.command("import")(importing.import_)


@app.callback()
def main(context: typer.Context) -> None:
    """As in cli/main.py."""
    context.obj = Context(Path("mirrorlake.yml"))


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, ["import", *map(str, arguments)])
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def test_the_yaml_goes_to_stdout_and_the_report_to_stderr() -> None:
    result = run(SAMPLES / "two-way.mm2.properties")
    assert list(yaml.safe_load(result.stdout)) == ["clusters", "lake", "defaults", "flows"]
    for part in ("Carried over", "Not needed", "Not supported", "frobnicate"):
        assert part in result.stderr and part not in result.stdout
    assert result.stderr.startswith(
        "What arrives is not what MirrorMaker brings:\n- east->west, west->east: "
    )


def test_json_is_one_document() -> None:
    result = run(SAMPLES / "secure.mm2.properties", "--json")
    document = json.loads(result.stdout)
    assert list(document) == ["topology", "carried", "not_needed", "not_supported", "notes"]
    assert set(document["carried"][0]) == {"file", "line", "key", "to"}
    assert (
        set(document["not_needed"][0])
        >= {"file", "key", "reason"}
        <= set(document["not_supported"][0])
    )
    assert "hunter2" not in result.stdout + result.stderr


def test_a_file_is_not_overwritten_unless_told_to(tmp_path: Path) -> None:
    path, sample = tmp_path / "mirrorlake.yml", SAMPLES / "secure.mm2.properties"
    result = run(sample, "-o", path)
    assert "Carried over" in result.stdout and "hunter2" not in result.output + path.read_text(
        encoding="utf-8"
    )
    assert set(load_topology(path).clusters) == {"primary", "dr"}
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="mirrorlake.yml exists; .* --force"):
        run(sample, "-o", path)
    assert path.read_text(encoding="utf-8") == "mine"
    run(sample, "-o", path, "--force", "--json")
    assert set(load_topology(path).clusters) == {"primary", "dr"}


def made(folder: Path, name: str) -> Any:
    return yaml.safe_load((folder / name).read_text(encoding="utf-8"))


def test_a_pod_mounts_what_its_topology_reads(tmp_path: Path) -> None:
    folder = tmp_path / "pod"
    result = run(SAMPLES / "strimzi" / "pair.v1.yaml", "--kubernetes", folder)
    assert "kubectl apply -k" in result.stdout and "${secret" in result.stdout
    deployment = made(folder, "deployment.yaml")
    check(deployment)
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    assert sorted(mounts.values()) == sorted(one["name"] for one in pod["volumes"])
    volumes = {one["name"]: one for one in pod["volumes"]}
    root = next(one["value"] for one in container["env"] if one["name"] == "MIRRORLAKE_SECRETS")
    text = (folder / "mirrorlake.yml").read_text(encoding="utf-8")
    secrets = {scope for scope, _ in re.findall(r"\$\{secret:([^/}]+)/([^}]+)\}", text)}
    assert secrets == {"mirror", "mirror-east", "proxy-ca", "west-cluster-ca-cert"}
    for secret in secrets:
        volume = volumes[mounts[f"{root}/{secret}"]]
        assert volume["secret"] == {"secretName": secret, "defaultMode": 0o440}
    assert "defaultMode: 0440" in (folder / "deployment.yaml").read_text(encoding="utf-8")
    assert f"{root}/kafka" not in mounts
    of_ours = yaml.safe_load((OPS / "deployment.yaml").read_text(encoding="utf-8"))
    ours = of_ours["spec"]["template"]["spec"]["containers"][0]
    assert all(container[key] == ours[key] for key in ("command", "startupProbe", "env", "ports"))
    kustomization = made(folder, "kustomization.yaml")
    assert kustomization["resources"] == ["deployment.yaml"]
    topology = load_topology(folder / "mirrorlake.yml")
    assert str(topology.lake.path) == "s3://change-me/lake" and not topology.tracking.enabled
    assert list(topology.flows) == ["east->west"]


@pytest.mark.parametrize("name", ["strimzi/pair.v1.yaml", "secure.mm2.properties"])
def test_kubectl_builds_what_is_written(tmp_path: Path, name: str) -> None:
    """Files that the note says to make are not there yet."""
    run(SAMPLES / name, "--kubernetes", tmp_path)
    documents = {document["kind"]: document for document in built(tmp_path)}
    assert documents.keys() == {"ConfigMap", "Deployment"}
    for document in documents.values():
        check(document)
    volumes = documents["Deployment"]["spec"]["template"]["spec"]["volumes"]
    (named,) = [one["configMap"]["name"] for one in volumes if "configMap" in one]
    assert named == documents["ConfigMap"]["metadata"]["name"]


def test_variables_of_a_pod_come_out_of_a_secret(tmp_path: Path) -> None:
    result = run(SAMPLES / "secure.mm2.properties", "--kubernetes", tmp_path, "--json")
    note = json.loads(result.stdout)["notes"][-1]
    assert f"kubectl apply -k {tmp_path}" in note
    assert json.loads(result.stdout)["topology"] == made(tmp_path, "mirrorlake.yml")
    deployment = made(tmp_path, "deployment.yaml")
    check(deployment)
    environment = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    text = (tmp_path / "mirrorlake.yml").read_text(encoding="utf-8")
    names = set(re.findall(r"\$\{env:(\w+)\}", text))
    assert names and all(name in note for name in names)
    for name in names:
        source = {"secretKeyRef": {"name": "mirrorlake", "key": name}}
        assert {"name": name, "valueFrom": source} in environment


def test_manifests_are_not_overwritten_unless_told_to(tmp_path: Path) -> None:
    sample = SAMPLES / "strimzi" / "pair.v1.yaml"
    (tmp_path / "kustomization.yaml").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="kustomization.yaml exists; .* --force"):
        run(sample, "--kubernetes", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kustomization.yaml"]
    run(sample, "--kubernetes", tmp_path, "--force")
    assert made(tmp_path, "kustomization.yaml")["kind"] == "Kustomization"
    with pytest.raises(InputError, match="two places"):
        run(sample, "--kubernetes", tmp_path, "-o", tmp_path / "mirrorlake.yml")


def test_mirrormaker_1_with_its_own_options(tmp_path: Path) -> None:
    files = (SAMPLES / "mm1-consumer.properties", SAMPLES / "mm1-producer.properties")
    for whitelist in ("--whitelist", "--include"):
        result = run(
            *files, whitelist, "orders.*", "--num.streams", "4", "--source-alias", "old", "--json"
        )
        assert json.loads(result.stdout)["topology"]["flows"]["old->target"]["topics"] == [
            "orders.*"
        ]


def test_wrong_files_end_with_one_sentence(tmp_path: Path) -> None:
    for arguments, sentence in (
        ([tmp_path / "none"], "none cannot be read: No such file or directory"),
        ([tmp_path], "cannot be read: Is a directory"),
        ([SAMPLES / "broken.json"], "broken.json is not valid JSON in line 3"),
        (
            [SAMPLES / "source.json", "-o", tmp_path / "no" / "x.yml"],
            "x.yml cannot be written: No such file",
        ),
    ):
        with pytest.raises(InputError, match=sentence) as caught:
            run(*arguments)
        assert caught.value.exit_code == 2 and "\n" not in caught.value.message
