"""The manifests of `ops/kubernetes`, as a test reads them."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "ops" / "kubernetes"


def manifest(name: str) -> dict[str, Any]:
    """One file of the folder."""
    read: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return read


def check(document: Any) -> None:
    """Raise for what the newest Kubernetes would refuse of a manifest, or not know."""
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def built(folder: Path) -> list[dict[str, Any]]:
    """What `kubectl apply -k` would send of a folder; skips where there is no kubectl, which asks
    no cluster for it."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run([program, "kustomize", str(folder)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return [dict(document) for document in yaml.safe_load_all(done.stdout)]


def pod() -> dict[str, Any]:
    """The pod's spec of the Deployment."""
    spec: dict[str, Any] = manifest("deployment.yaml")["spec"]["template"]["spec"]
    return spec


def container() -> dict[str, Any]:
    """Its only container."""
    (one,) = pod()["containers"]
    read: dict[str, Any] = one
    return read
