"""The manifests of `ops/kubernetes`, as a test reads them."""

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "ops" / "kubernetes"


def manifest(name: str) -> dict[str, Any]:
    """One file of the folder."""
    read: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return read


def pod() -> dict[str, Any]:
    """The pod's spec of the Deployment."""
    spec: dict[str, Any] = manifest("deployment.yaml")["spec"]["template"]["spec"]
    return spec


def container() -> dict[str, Any]:
    """Its only container."""
    (one,) = pod()["containers"]
    read: dict[str, Any] = one
    return read
