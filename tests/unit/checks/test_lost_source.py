"""A source that is lost, or in whose name something refuses: it is gone, and flows go on with what is staged of it.

The listeners are real, the clusters that answer are not.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.checks.preflight import judge
from mirrorlake.config.topology import Topology
from mirrorlake.errors import AuthenticationFailed, ClusterUnusable
from mirrorlake.groups.inventory import silence
from mirrorlake.groups.shared_topics import Way
from mirrorlake.kafka.connections import Connections
from tests.support.traps import garbage, out_of_date, trap

FLOW = "east->west"


def topology(address: str = "127.0.0.1:1", security: dict[str, object] | None = None) -> Topology:
    clusters = {"east": {"bootstrap_servers": address}, "west": {"bootstrap_servers": "127.0.0.1:2"}}
    if security is not None:
        clusters["east"]["security"] = security  # type: ignore[assignment]
    return Topology.model_validate({"clusters": clusters, "lake": {"path": "lake"}, "flows": {FLOW: {}}})


@pytest.mark.parametrize(("kind", "said"), [(out_of_date, "expired"), (garbage, "cannot be used")])
def test_one_that_refuses_is_as_gone_as_one_that_is_silent(
    kind: Callable[[Path], Callable[..., None]], said: str, tmp_path: Path
) -> None:
    with trap(kind(tmp_path)) as address:
        security = {"protocol": "SSL", "ca_file": str(tmp_path / "ca.pem")}
        if kind is garbage:
            del security["ca_file"]
        connections = Connections(topology(address, security))
        flow = connections.topology.flow(FLOW)
        why = silence(connections, Way(flow))
        assert why is not None and said in why and "east" in why
        home = Way(replace(flow, source="west", target="east"), reverse=True)
        with pytest.raises(AuthenticationFailed):  # nothing can stand for it on the way home
            silence(connections, home)


class Clusters:
    """Connections of which some clusters refuse."""

    def __init__(self, *refusing: str) -> None:
        self.topology = topology()
        self.refusing = refusing

    def identify(self, aliases: Iterable[str]) -> dict[str, str]:
        for alias in aliases:
            if alias in self.refusing:
                raise AuthenticationFailed(f"cluster {alias} cannot be used", alias=alias)
        return {alias: f"id-of-{alias}" for alias in aliases}

    def admin(self, _alias: str) -> SimpleNamespace:
        return SimpleNamespace(topics=dict, known_brokers=lambda: 1)


def lake(*known: str) -> Any:
    rows = [{"cluster_id": f"id-of-{alias}", "alias": alias, "fresh": False} for alias in known]
    return SimpleNamespace(query=lambda _name: SimpleNamespace(collect=lambda: rows))


def judged(clusters: Clusters, known: Any, **options: bool) -> None:
    judge(known, clusters, [clusters.topology.flow(FLOW)], **options)  # type: ignore[arg-type]


def test_a_flow_starts_without_its_source_where_something_of_it_may_be_staged() -> None:
    judged(Clusters("east"), lake("east", "west"))
    judged(Clusters("east"), None, lake_exists=True)
    for known in (lake(), lake("west"), None):
        with pytest.raises(ClusterUnusable, match="east"):
            judged(Clusters("east"), known)


def test_a_flow_without_its_target_can_do_nothing() -> None:
    for refusing in (("west",), ("east", "west")):
        with pytest.raises(ClusterUnusable):
            judged(Clusters(*refusing), lake("east", "west"))
