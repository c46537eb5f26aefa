"""Rights at a target are never wider than at the source, whatever it refuses in between."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.control import acl_sync
from mirrorlake.control.acl_order import apart
from mirrorlake.control.acl_sync import AclSync
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, write_file

ALL, ONE, OTHER = ("PREFIXED", "t"), ("LITERAL", "t1"), ("LITERAL", "u")


def acl(pattern: str, name: str, permission: str = "ALLOW", principal: str = "User:a") -> Acl:
    return Acl(pattern, name, principal, "*", "READ", permission)


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        (ONE, ONE, True),
        (ONE, OTHER, False),
        (ALL, ONE, True),
        (ONE, ALL, True),
        (ALL, ("PREFIXED", "t1"), True),
        (("PREFIXED", "t1"), ALL, True),
        (OTHER, ALL, False),
        (OTHER, ("LITERAL", "*"), True),
        (("LITERAL", "*"), OTHER, True),
        (("LITERAL", "t"), ("LITERAL", "t1"), False),
    ],
)
def test_acls_are_apart_that_no_topic_has_both(
    one: tuple[str, str], other: tuple[str, str], overlap: bool
) -> None:
    denied = acl(*other, permission="DENY", principal="User:*")
    assert apart([acl(*one)], [denied]) == ([] if overlap else [acl(*one)])
    assert apart([acl(*one)], []) == [acl(*one)]


class Clusters:
    """Two clusters with ACLs; the target refuses those of `refuses`, with a permission, to be made
    or to be taken away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *source: Acl) -> None:
        self.at: dict[str, set[Acl]] = {"east": set(source), "west": set()}
        self.refuses: set[tuple[str, str]] = set()
        monkeypatch.setattr(
            acl_sync, "describe_topic_acls", lambda cluster: frozenset(self.at[cluster.alias])
        )
        monkeypatch.setattr(acl_sync, "create_acls", self._create)
        monkeypatch.setattr(acl_sync, "delete_acls", self._delete)

    def _create(self, _: object, acls: Sequence[Acl]) -> dict[Acl, str | None]:
        return {acl: self._done("create", acl, self.at["west"].add) for acl in acls}

    def _delete(self, _: object, acls: Sequence[Acl]) -> dict[Acl, str | None]:
        return {acl: self._done("delete", acl, self.at["west"].remove) for acl in acls}

    def _done(self, action: str, acl: Acl, change: object) -> str | None:
        if (action, acl.permission) in self.refuses:
            return "a policy of the cluster"
        change(acl)  # type: ignore[operator]
        return None


def sync_of(tmp_path: Path) -> AclSync:
    topology = load_topology(write_file(tmp_path, flows={FLOW: {"topics": ["t", "u"]}}))
    clusters = {alias: MemoryCluster(alias, {"t": [0], "u": [0]}) for alias in ("east", "west")}
    connections = Connections(topology, clusters)  # type: ignore[arg-type]
    return AclSync(
        topology.flow(FLOW), connections, MemoryLog(), remote_topic=lambda topic: f"east.{topic}"
    )


def test_what_is_denied_at_the_source_is_never_allowed_at_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = acl("LITERAL", "t", principal="User:*")
    denied, other = acl("LITERAL", "t", "DENY"), acl("LITERAL", "u")
    clusters, sync = Clusters(monkeypatch, allowed, denied, other), sync_of(tmp_path)
    clusters.refuses = {("create", "DENY")}
    for _ in range(2):  # in the second turn what was refused waits
        sync.sync()
        assert clusters.at["west"] == {other.on("LITERAL", "east.u")}
    assert sync.undone.keys() == {one.on("LITERAL", "east.t") for one in (allowed, denied)}

    clusters.refuses = set()
    sync._refusals.keep(())
    sync.sync()
    everything = {one.on("LITERAL", f"east.{one.name}") for one in (allowed, denied, other)}
    assert clusters.at["west"] == everything and sync.undone == {}

    clusters.at["east"] = {other}
    clusters.refuses = {("delete", "ALLOW")}
    for _ in range(2):
        sync.sync()
        assert clusters.at["west"] == everything, "the denial goes behind what it limits"
    clusters.refuses = set()
    sync._refusals.keep(())
    sync.sync()
    assert clusters.at["west"] == {other.on("LITERAL", "east.u")}
