"""ACLs of mirrors: MirrorMaker 2's rule, patterns written out, and only our own ever taken away."""

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.core.acl_plan import Acl, AclChange, implied_acls, owned_acls, plan_acls
from mirrorlake.core.changes import Change
from tests.support.acls import acl

NAMES = {"orders": "east.orders", "orders-eu": "east.orders-eu", "pay": "east.pay"}


def test_literal_acls_are_renamed_and_carried_over_word_for_word() -> None:
    source = {acl("orders", "DESCRIBE", principal="User:CN=ann,O=x", host="10.0.0.1"), acl("orders", "ALTER_CONFIGS")}
    assert implied_acls(source, NAMES) == {
        acl("east.orders", "DESCRIBE", principal="User:CN=ann,O=x", host="10.0.0.1"),
        acl("east.orders", "ALTER_CONFIGS"),
    }
    assert implied_acls({acl("other")}, NAMES) == set()


def test_nobody_may_write_to_a_mirror_by_an_acl_of_the_source() -> None:
    assert implied_acls({acl("orders", "WRITE")}, NAMES) == set()
    assert implied_acls({acl("orders", "ALL")}, NAMES) == {acl("east.orders", "READ")}


def test_denials_are_kept_whole() -> None:
    denied = {acl("orders", operation, "DENY") for operation in ("WRITE", "ALL", "READ")}
    assert implied_acls(denied, NAMES) == {acl("east.orders", op, "DENY") for op in ("WRITE", "ALL", "READ")}


def test_a_prefix_is_written_out_for_the_mirrored_topics_that_have_it() -> None:
    assert implied_acls({acl("orders", pattern="PREFIXED")}, NAMES) == {acl("east.orders"), acl("east.orders-eu")}
    assert implied_acls({acl("x", pattern="PREFIXED")}, NAMES) == set()
    identity = {"orders": "orders"}  # orders-eu is not selected: the target's own orders-eu gets nothing
    assert implied_acls({acl("orders", pattern="PREFIXED")}, identity) == {acl("orders")}


def test_the_wildcard_is_written_out_for_all_mirrored_topics() -> None:
    assert implied_acls({acl("*")}, NAMES) == {acl(name) for name in NAMES.values()}
    assert implied_acls({acl("*", pattern="PREFIXED")}, NAMES) == set()  # a prefix of names that begin with a star


def test_only_the_difference_is_made() -> None:
    source = {acl("orders"), acl("pay")}
    assert plan_acls(source, {acl("east.pay")}, set(), NAMES, {}) == [AclChange("create", acl("east.orders"))]
    assert plan_acls(source, {acl("east.pay"), acl("east.orders")}, set(), NAMES, {}) == []


def test_only_our_own_are_taken_away() -> None:
    target = {acl("east.orders"), acl("east.pay"), acl("east.pay", principal="User:hand")}
    assert plan_acls(set(), target, {acl("east.orders")}, NAMES, {}) == [AclChange("delete", acl("east.orders"))]


def test_what_others_took_away_is_forgotten() -> None:
    assert plan_acls(set(), set(), {acl("east.orders")}, NAMES, {}) == [AclChange("forget", acl("east.orders"))]


def test_rights_on_the_mirror_of_a_topic_that_is_gone_follow_the_source_acls_still() -> None:
    ours = {acl("east.gone"), acl("east.gone", principal="User:bob")}
    source = {acl("go", pattern="PREFIXED"), acl("go", "DESCRIBE", pattern="PREFIXED")}
    plan = plan_acls(source, ours, ours, NAMES, {"gone": "east.gone"})
    assert plan == [AclChange("delete", acl("east.gone", principal="User:bob"))]  # and nothing new is made there


def test_an_owned_acl_of_which_nobody_knows_the_topic_stays() -> None:
    assert plan_acls(set(), {acl("old.orders")}, {acl("old.orders")}, NAMES, {}) == []


def test_what_we_own_is_folded_from_history() -> None:
    first, second, third = acl("east.orders"), acl("east.pay"), acl("east.orders-eu", "ALL", "DENY")
    history = [
        AclChange("create", first).row(),
        AclChange("create", second).row("refused by the cluster"),
        AclChange("create", third).row(),
        AclChange("delete", first).row(),
        AclChange("delete", third).row("refused by the cluster"),
        Change("config", "east.pay", None, "retention.ms=1"),
        Change("acl", "cluster east", None, None, "skipped", "no authorizer"),
    ]
    assert owned_acls(history) == {third}
    assert owned_acls([*history, AclChange("forget", third).row()]) == set()
    assert owned_acls([*history, AclChange("create", first).row()]) == {third, first}


topics = st.sampled_from(["a", "ab", "abc", "b", "*"])
acls = st.builds(
    Acl,
    st.sampled_from(["LITERAL", "PREFIXED"]),
    topics,
    st.sampled_from(["User:ann", "User:bob", "User:*"]),
    st.sampled_from(["*", "h"]),
    st.sampled_from(["READ", "WRITE", "ALL", "DESCRIBE", "DELETE", "ALTER_CONFIGS"]),
    st.sampled_from(["ALLOW", "DENY"]),
)
acl_sets = st.frozensets(acls, max_size=8)
names_of = st.sets(st.sampled_from(["a", "ab", "abc", "b"])).flatmap(
    lambda chosen: st.sampled_from([{t: t for t in sorted(chosen)}, {t: f"east.{t}" for t in sorted(chosen)}])
)
IMPLIES = {"DESCRIBE": {"READ", "WRITE", "DELETE", "ALTER"}, "DESCRIBE_CONFIGS": {"ALTER_CONFIGS"}}
OPERATIONS = ("READ", "WRITE", "DESCRIBE", "DELETE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS")


def allows(acls: frozenset[Acl], topic: str, principal: str, host: str, operation: str) -> bool:
    """Kafka's StandardAuthorizer, with allow.everyone.if.no.acl.found=false."""
    found = [
        each
        for each in acls
        if (each.name in (topic, "*") if each.pattern == "LITERAL" else topic.startswith(each.name))
        and each.principal in (principal, "User:*")
        and each.host in (host, "*")
    ]
    if any(each.permission == "DENY" and each.operation in (operation, "ALL") for each in found):
        return False
    granting = {operation, "ALL"} | IMPLIES.get(operation, set())
    return any(each.permission == "ALLOW" and each.operation in granting for each in found)


def apply(plan: list[AclChange], target: frozenset[Acl]) -> frozenset[Acl]:
    return (target | {change.acl for change in plan if change.action == "create"}) - {
        change.acl for change in plan if change.action == "delete"
    }


@given(acl_sets, names_of)
def test_a_mirror_never_grants_more_than_its_source(source: frozenset[Acl], names: dict[str, str]) -> None:
    made = apply(plan_acls(source, frozenset(), frozenset(), names, {}), frozenset())
    assert all(each.pattern == "LITERAL" and each.name in names.values() for each in made)
    for principal in ("User:ann", "User:bob", "User:eve"):
        for host in ("h", "i"):
            for operation in OPERATIONS:
                for topic, name in names.items():
                    there = allows(source, topic, principal, host, operation)
                    here = allows(made, name, principal, host, operation)
                    assert here <= there
                    if operation in ("READ", "DESCRIBE"):
                        reads = allows(source, topic, principal, host, "READ")
                        assert here == there or (operation == "DESCRIBE" and not reads)


@given(st.lists(st.tuples(acl_sets, names_of), min_size=1, max_size=4), acl_sets)
def test_by_difference_over_many_rounds(
    rounds: list[tuple[frozenset[Acl], dict[str, str]]], hand: frozenset[Acl]
) -> None:
    """Nothing is left to do after a round, what people made stays, and what is ours is what the history says."""
    target, history = hand, []
    gone = {topic: f"east.{topic}" for topic in ("a", "ab", "abc", "b")}
    for source, selected in rounds:
        names = {topic: f"east.{topic}" for topic in selected}
        done = plan_acls(source, target, owned_acls(history), names, gone)
        target = apply(done, target)
        history += [change.row() for change in done]
        assert plan_acls(source, target, owned_acls(history), names, gone) == []
        assert hand <= target
        assert target - hand == owned_acls(history)
        assert implied_acls(source, names) <= target
        assert owned_acls(history) <= implied_acls(source, gone)
