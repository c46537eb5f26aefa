"""The topology as the text of a YAML file, with short comments."""

from collections.abc import Mapping, Sequence
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
    """Write a topology; `variables` are the environment variables it reads, with the keys that read
    them, `mounts` the Secrets of Kubernetes that it reads, with their keys."""
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
        """Say that nothing is shared."""
        return True


def _text(dumper: PlainDumper, text: str) -> yaml.ScalarNode:
    """A text of several lines, such as a certificate, line by line."""
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


PlainDumper.add_representer(str, _text)
