"""The smallest topology file for two clusters, tried on both before it is written: what
`mirrorlake init` makes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.config.topology_file import explain
from mirrorlake.errors import ClusterUnusable, InputError
from mirrorlake.kafka.connections import Connections

_HEAD = "# Written by `mirrorlake init`; yours to change. docs/settings.md has every key.\n"
_LOGIN = (
    "; for a cluster that wants TLS or a login write the file with --untried, and a security block "
    "into it (docs/security.md)"
)


@dataclass(frozen=True)
class End:
    """One cluster of a flow: its alias, and `host:port` of one broker of it or more."""

    alias: str
    bootstrap_servers: str


@dataclass(frozen=True)
class FirstFile:
    """A topology with one flow, as the text of its file; and what its clusters answered: their ids
    by alias, and the source's topics that the flow mirrors. Both are empty before they were
    asked."""

    text: str
    flow: ResolvedFlow
    topology: Topology
    cluster_ids: Mapping[str, str]
    topics: tuple[str, ...] = ()


def first_file(source: End, target: End, topics: str) -> FirstFile:
    """The file for a flow of all topics that match one of the patterns, with commas between them.
    Raises TopologyError for what cannot be run."""
    content: dict[str, Any] = {
        "clusters": {
            end.alias: {"bootstrap_servers": end.bootstrap_servers} for end in (source, target)
        },
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


def tried(file: FirstFile, connect: Callable[[Topology], Connections] = Connections) -> FirstFile:
    """Ask both clusters, and change nothing.

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
