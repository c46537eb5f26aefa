"""A source that is lost, or in whose name something refuses: it is gone, and flows go on with what
is staged of it.

The listeners are real, the clusters that answer are not.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.checks.preflight import judge
from mirrorlake.config.topology import Topology
from mirrorlake.errors import AuthenticationFailed, ClusterUnusable
from mirrorlake.groups.inventory import why_unreachable
from mirrorlake.groups.shared_topics import Route
from mirrorlake.kafka.connections import Connections
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.traps import garbage, out_of_date, trap

FLOW = "east->west"


def topology(address: str = "127.0.0.1:1", security: dict[str, object] | None = None) -> Topology:
    clusters = {
        "east": {"bootstrap_servers": address},
        "west": {"bootstrap_servers": "127.0.0.1:2"},
    }
    if security is not None:
        clusters["east"]["security"] = security  # type: ignore[assignment]
    return Topology.model_validate(
        {"clusters": clusters, "lake": {"path": "lake"}, "flows": {FLOW: {}}}
    )


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (out_of_date, "expired"),
        pytest.param(
            garbage,
            "cannot be used",
            marks=pytest.mark.wide("test_one_that_refuses_is_as_gone_as_one_that_is_silent"),
        ),
    ],
)
def test_one_that_refuses_is_as_gone_as_one_that_is_silent(
    kind: Callable[[Path], Callable[..., None]], said: str, tmp_path: Path
) -> None:
    with trap(kind(tmp_path)) as address:
        security = {"protocol": "SSL", "ca_file": str(tmp_path / "ca.pem")}
        if kind is garbage:
            del security["ca_file"]
        connections = Connections(topology(address, security))
        flow = connections.topology.flow(FLOW)
        nothing: Any = None  # the lake is not asked
        route = Route(flow, lake=nothing, connections=connections)
        why = why_unreachable(route)
        assert why is not None and said in why and "east" in why
        home = replace(route, flow=replace(flow, source="west", target="east"), reverse=True)
        with pytest.raises(AuthenticationFailed):  # nothing can stand for it on the way home
            why_unreachable(home)


def connected(*refusing: str) -> Connections:
    """Connections of which some clusters refuse."""
    clusters = {alias: MemoryCluster(alias) for alias in ("east", "west")}
    for alias in refusing:
        clusters[alias].refusal = AuthenticationFailed(
            f"cluster {alias} cannot be used", alias=alias
        )
    return Connections(topology(), clusters)


def lake(*known: str) -> MemoryLake:
    rows = [{"cluster_id": f"id-of-{alias}", "alias": alias, "fresh": False} for alias in known]
    return MemoryLake({"known_clusters": rows})


def judged(clusters: Connections, known: MemoryLake | None, **options: bool) -> None:
    judge(known, clusters, [clusters.topology.flow(FLOW)], **options)


def test_a_flow_starts_without_its_source_where_something_of_it_may_be_staged() -> None:
    judged(connected("east"), lake("east", "west"))
    judged(connected("east"), None, lake_exists=True)
    for known in (lake(), lake("west"), None):
        with pytest.raises(ClusterUnusable, match="east"):
            judged(connected("east"), known)


def test_a_flow_without_its_target_can_do_nothing() -> None:
    for refusing in (("west",), ("east", "west")):
        with pytest.raises(ClusterUnusable):
            judged(connected(*refusing), lake("east", "west"))
