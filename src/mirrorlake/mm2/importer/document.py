"""Writes the topology as a YAML file with comments, and manifests of `ops/kubernetes` for it."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any

import yaml

_LAKE = (
    "Where the tables live; or {catalog: …, schema: …, checkpoints: /Volumes/…} in Unity Catalog."
)
_DEFAULTS = "Beneath every flow."


def topology_text(
    document: Mapping[str, Any],
    files: Sequence[str],
    variables: Mapping[str, str],
    mounts: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str:
    """Write a topology; `variables` maps the environment variables that it reads to their keys in
    it, `mounts` its Kubernetes Secrets to their keys."""
    comments = {"lake": [_LAKE], "defaults": [_DEFAULTS]}
    head = [f"Made by `mirrorlake import` of {', '.join(files)}; yours to change."]
    if variables:
        head.append(
            "Before it runs, set these environment variables, or write ${secret:scope/key} instead:"
        )
        head.extend(f"  {name}  ({key})" for name, key in variables.items())
    if mounts:
        head.append(
            "Before it runs, mount these Secrets below the folder that MIRRORLAKE_SECRETS names:"
        )
        head.extend(f"  {secret}  ({', '.join(keys)})" for secret, keys in mounts.items())
    blocks = ["".join(f"# {line}\n" for line in head)]
    for key, value in document.items():
        comment = "".join(f"# {line}\n" for line in comments.get(key, []))
        blocks.append(
            comment
            + yaml.dump(
                {key: value}, Dumper=PlainDumper, sort_keys=False, allow_unicode=True, width=110
            )
        )
    return "\n".join(blocks)


class PlainDumper(yaml.SafeDumper):
    """Never writes anchors: a list that two flows share is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: no node is shared."""
        return True


def _text(dumper: PlainDumper, text: str) -> yaml.ScalarNode:
    """Represent a multi-line text, such as a certificate, in block style."""
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


PlainDumper.add_representer(str, _text)


#: The example volume in ops/kubernetes/deployment.yaml, replaced by the topology's Secrets.
_EXAMPLE = "kafka"
#: The Secret with the environment variables that the topology reads.
_VARIABLES = "mirrorlake"
_POD_LAKE = {"path": "s3://change-me/lake", "checkpoints": "/tmp/checkpoints"}
_MODE = 0o440
_APPLY = (
    "Made by `mirrorlake import`; yours to change. Run `kubectl apply -k` in the namespace of the\n"
    "# Secrets, once lake.path in mirrorlake.yml and the image are yours."
)


def for_a_pod(document: Mapping[str, Any]) -> dict[str, Any]:
    """Adapt a topology to pods: a placeholder for a lake that outlives them, standby for each
    other, and no tracking, which is kept beside the file."""
    parts = {**document, "lake": dict(_POD_LAKE)}
    flows = parts.pop("flows")
    return {**parts, "flows": flows, "availability": "kafka", "tracking": {"enabled": False}}


def manifests(
    template: str, variables: Mapping[str, str], mounts: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """The files beside mirrorlake.yml by name: the Deployment from `template`, with each Secret of
    `mounts` where `${secret:NAME/KEY}` looks for it and `variables` from the Secret mirrorlake; and
    the kustomization."""
    return {
        "deployment.yaml": _manifest_text(_deployment(yaml.safe_load(template), variables, mounts)),
        "kustomization.yaml": _manifest_text(
            {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "resources": ["deployment.yaml"],
                "configMapGenerator": [{"name": "mirrorlake", "files": ["mirrorlake.yml"]}],
                "images": [
                    {"name": "mirrorlake", "newName": "registry.example.org/mirrorlake"}
                    | {"newTag": "latest"}
                ],
            }
        ),
    }


def pod_note(folder: str, variables: Mapping[str, str]) -> str:
    """The remaining steps, a sentence for a person."""
    secret = (
        f", make a Secret {_VARIABLES} with the keys {', '.join(variables)}" if variables else ""
    )
    return (
        f"{folder}: write the lake's place into mirrorlake.yml and your image into "
        f"kustomization.yaml{secret}, then run `kubectl apply -k {folder}` in the namespace of the "
        "Secrets"
    )


def _deployment(
    template: Mapping[str, Any], variables: Mapping[str, str], mounts: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    made = deepcopy(dict(template))
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    folder = next(one for one in container["volumeMounts"] if one["name"] == _EXAMPLE)["mountPath"]
    for parent, name in ((pod, "volumes"), (container, "volumeMounts")):
        parent[name] = [one for one in parent[name] if one["name"] != _EXAMPLE]
    for number, secret in enumerate(mounts, 1):
        # A volume's name must be shorter than a Secret's may be, and without dots.
        name = f"secret-{number}"
        path = f"{folder.removesuffix(_EXAMPLE)}{secret}"
        container["volumeMounts"].append({"name": name, "mountPath": path, "readOnly": True})
        volume = {"secretName": secret, "defaultMode": _Mode(_MODE)}
        pod["volumes"].append({"name": name, "secret": volume})
    for name in variables:
        source = {"secretKeyRef": {"name": _VARIABLES, "key": name}}
        container["env"].append({"name": name, "valueFrom": source})
    return made


class _Mode(int):
    """A file mode, written in octal digits."""


class _Dumper(PlainDumper):
    """Writes file modes in octal digits."""


def _mode(dumper: _Dumper, mode: _Mode) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:int", f"0{mode:o}")


_Dumper.add_representer(_Mode, _mode)


def _manifest_text(manifest: Mapping[str, Any]) -> str:
    return f"# {_APPLY}\n" + yaml.dump(dict(manifest), Dumper=_Dumper, sort_keys=False, width=110)
