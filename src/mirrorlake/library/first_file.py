"""The minimal topology file of `mirrorlake init`, tried on both clusters before it is written."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from mirrorlake.config.references import is_reference, variables
from mirrorlake.config.security import Security
from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.config.topology_file import explain
from mirrorlake.errors import ClusterUnusable, InputError
from mirrorlake.kafka.connections import Connections

_HEAD = "# Written by `mirrorlake init`; yours to change. docs/settings.md has every key.\n"
_LOGIN = (
    "; for a cluster that wants TLS or a login say how by --source-security or --target-security, "
    "such as protocol=SASL_SSL (docs/security.md)"
)
#: Keys of a security block that may hold a secret; they are written only as references.
_SECRET = ("password", "client_secret", "key_password", "key_file")


@dataclass(frozen=True)
class End:
    """A cluster of a flow: alias, `host:port` of brokers, and security block with references."""

    alias: str
    bootstrap_servers: str
    security: Mapping[str, str] = field(default_factory=dict)

    @property
    def block(self) -> dict[str, Any]:
        """The cluster's block in the file."""
        security = {"security": dict(self.security)} if self.security else {}
        return {"bootstrap_servers": self.bootstrap_servers, **security}


@dataclass(frozen=True)
class FirstFile:
    """A topology with one flow, as the text of its file, and the clusters' answers: their ids by
    alias, and the source's topics that the flow mirrors. Both are empty before `tried`."""

    text: str
    flow: ResolvedFlow
    topology: Topology
    cluster_ids: Mapping[str, str]
    topics: tuple[str, ...] = ()

    @property
    def variables(self) -> set[str]:
        """The environment variables that the file needs."""
        return variables(self.text)


def first_file(source: End, target: End, topics: str) -> FirstFile:
    """Make the file for a flow of all topics that match one of the comma-separated patterns. Raises
    TopologyError for an invalid topology."""
    content: dict[str, Any] = {
        "clusters": {end.alias: end.block for end in (source, target)},
        "lake": {"path": "./lake"},
        "flows": {f"{source.alias}->{target.alias}": {"topics": topics.split(",")}},
    }
    if source.alias == target.alias:
        raise InputError(
            f"both clusters are called {source.alias}; give each a name of its own by "
            "--source-name and --target-name"
        )
    try:
        topology = Topology.model_validate(content)
    except ValidationError as error:
        raise explain(Path("the file to be written"), error, {}) from None
    (flow,) = topology.active_flows()
    return FirstFile(_HEAD + yaml.safe_dump(content, sort_keys=False), flow, topology, {})


def security_of(given: Iterable[str], option: str) -> dict[str, str]:
    """Parse a security block from an option's KEY=VALUE texts. Raises InputError for an invalid
    text, and for a secret in plain text, which the message does not repeat."""
    block: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"{option} takes KEY=VALUE, such as protocol=SASL_SSL")
        if key not in Security.model_fields:
            near = get_close_matches(key, Security.model_fields, 1)
            meant = f"; did you mean {near[0]}" if near else ""
            raise InputError(f"{option}: a security block has no {key}{meant} (docs/security.md)")
        is_path = key == "key_file" and "-----" not in value
        if key in _SECRET and not (is_path or is_reference(value)):
            raise InputError(
                f"{option}: {key} would be in the file for all to read; give a reference, such as "
                f"'{key}=${{env:NAME}}' or '{key}=${{secret:scope/key}}', in single quotes"
            )
        block[key] = value
    return block


def tried(file: FirstFile, connect: Callable[[Topology], Connections] = Connections) -> FirstFile:
    """Connect to both clusters and complete the file's answers; change nothing.

    Raises:
        ClusterUnusable: one does not answer, or refuses us.
        InputError: both are the same cluster.
    """
    connections = connect(file.topology)
    try:
        ids = connections.identify((file.flow.source, file.flow.target))
        there = connections.admin(file.flow.source).topics()
    except ClusterUnusable as error:
        raise type(error)(f"{error}{_LOGIN}", alias=error.alias) from error
    if len(set(ids.values())) < len(ids):
        raise InputError(
            f"both addresses lead to cluster {ids[file.flow.source]}; give those of two clusters"
        )
    topics = tuple(sorted(topic for topic in there if file.flow.selection.selects(topic)))
    return FirstFile(file.text, file.flow, file.topology, ids, topics)
