"""ACLs of restored topics: what applied to them at the source, and to nothing else at the
target."""

import pytest

from mirrorlake.kafka.admin_acls import NoAcls
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.naming.naming import Naming
from mirrorlake.resend import acls
from mirrorlake.resend.acls import AclsPlanned, plan_restored_acls
from mirrorlake.testing import MemoryCluster
from tests.support.acls import acl

NAMING = Naming("identity", "east")
NAMES = {"orders": "orders", "orders-eu": "orders-eu"}
LITERAL = acl("orders", "WRITE", principal="User:shop")
DENIED = acl("orders", "ALL", "DENY", host="10.0.0.1")
BELOW = acl("ord", "ALL", pattern="PREFIXED")
EVERYTHING = acl("*", "DESCRIBE")


def planned(
    monkeypatch: pytest.MonkeyPatch,
    states: dict[str, tuple[Acl, ...] | None],
    there: frozenset[Acl] | NoAcls = frozenset(),
    strange: str | None = None,
) -> AclsPlanned:
    admin = MemoryCluster("third")
    admin.make("orders", 0)
    if strange is not None:
        admin.make(strange, 0)
    monkeypatch.setattr(acls, "describe_topic_acls", lambda _admin: there)
    stated = {topic: TopicState(1, 1, acls=found) for topic, found in states.items()}
    return plan_restored_acls(stated, NAMES, NAMING, admin)  # type: ignore[arg-type]


def test_they_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who wrote to a topic may write to it again, unlike to a mirror."""
    states = {"orders": (LITERAL, DENIED, BELOW), "orders-eu": (BELOW,)}
    assert planned(monkeypatch, states) == AclsPlanned(tuple(sorted((LITERAL, DENIED, BELOW))))
    assert planned(monkeypatch, states, frozenset({DENIED, BELOW})).create == (LITERAL,)


def test_nobody_gets_a_right_on_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a topic of somebody else lies below a prefix, and for all topics, each restored topic
    gets its own."""
    states = dict.fromkeys(NAMES, (BELOW, EVERYTHING))
    each = {one.on("LITERAL", topic) for one in (BELOW, EVERYTHING) for topic in NAMES}
    assert set(planned(monkeypatch, states, strange="ordinary").create) == each
    wide = {BELOW, *(EVERYTHING.on("LITERAL", topic) for topic in NAMES)}
    assert set(planned(monkeypatch, states, strange="other").create) == wide


def test_what_cannot_be_done_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    untold = planned(monkeypatch, {"orders": (LITERAL,), "orders-eu": None})
    assert untold.create == (LITERAL,) and "topic orders-eu are not restored" in untold.left[0]
    without = planned(monkeypatch, dict.fromkeys(NAMES, (LITERAL,)), NoAcls(True, "no authorizer"))
    assert without == AclsPlanned(untaken=("cluster third takes no ACLs: no authorizer",))
