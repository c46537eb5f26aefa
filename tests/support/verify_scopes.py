"""What `verify` compares of a lake whose clusters are in memory."""

from collections.abc import Iterable

import pytest

from mirrorlake.config.topology import Topology
from mirrorlake.kafka.admin_configs import Described
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.testing import MemoryCluster
from mirrorlake.verify import scope as scope_of_flow
from mirrorlake.verify.scope import FlowScope
from tests.support.lake_rows import FLOW


def scope_of(
    lake: Lake, topology: Topology, monkeypatch: pytest.MonkeyPatch, asked: list[str] | None = None
) -> FlowScope:
    """The scope of a flow with one topic of twenty records, and its mirror. `asked` gets the topics
    whose configs it asks for."""

    def describe(_: object, topics: Iterable[str]) -> Described:
        (asked if asked is not None else []).extend(topics)
        return Described()

    clusters = {
        "east": MemoryCluster("east", {"orders": [20]}),
        "west": MemoryCluster("west", {"east.orders": [20]}),
    }
    monkeypatch.setattr(scope_of_flow, "describe_topic_configs", describe)
    monkeypatch.setattr("mirrorlake.verify.coverage._first_rows", lambda *_: {})
    deployment = Deployment.opened(lake, Connections(topology, clusters))
    return FlowScope(topology.flow(FLOW), deployment, lambda _: True)
