"""ACLs of mirrors: MirrorMaker 2's rule, patterns written out, and only our own ever taken away."""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.control.acl_order import removals
from mirrorlake.control.acl_plan import AclChange, Mirrors, owned_acls, plan_acls
from mirrorlake.control.acl_plan import implied_acls as imply
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.changes import Change
from tests.support.acls import acl

NAMES = {"orders": "east.orders", "orders-eu": "east.orders-eu", "pay": "east.pay"}


def default(names: dict[str, str], upstream: dict[str, str] | None = None) -> Mirrors:
    """Mirrors named by the default policy: prefixes take the alias."""
    return Mirrors(names, upstream or {}, lambda prefix: f"east.{prefix}")


def identity(names: dict[str, str], *strange: str) -> Mirrors:
    """Mirrors that keep their names, beside topics of the target's own."""
    return Mirrors(
        names,
        {},
        lambda prefix: prefix or None,
        lambda prefix: not any(name.startswith(prefix) for name in strange),
    )


def implied_acls(source: set[Acl], mirrors: Mirrors | dict[str, str]) -> set[Acl]:
    return set(imply(source, mirrors if isinstance(mirrors, Mirrors) else Mirrors(mirrors)).acls)


def plan(
    source: set[Acl],
    target: set[Acl],
    owned: set[Acl],
    names: dict[str, str],
    upstream: dict[str, str] | None = None,
) -> list[AclChange]:
    return plan_acls(
        source, target, dict.fromkeys(owned, "p"), mirrors=default(names, upstream), policy="p"
    ).changes


def test_literal_acls_are_renamed_and_carried_over_word_for_word() -> None:
    source = {
        acl("orders", "DESCRIBE", principal="User:CN=ann,O=x", host="10.0.0.1"),
        acl("orders", "ALTER_CONFIGS"),
    }
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
    assert implied_acls(denied, NAMES) == {
        acl("east.orders", op, "DENY") for op in ("WRITE", "ALL", "READ")
    }


def test_a_prefix_stays_a_prefix_where_the_policy_keeps_prefixes() -> None:
    prefixed = {acl("orders", pattern="PREFIXED")}
    assert implied_acls(prefixed, default(NAMES)) == {acl("east.orders", pattern="PREFIXED")}
    assert implied_acls({acl("x", pattern="PREFIXED")}, default(NAMES)) == set(), "no mirror has it"
    same = {name: name for name in NAMES}
    assert implied_acls(prefixed, identity(same, "payments")) == prefixed


def test_the_wildcard_is_the_prefix_of_all_mirrors_and_never_all_of_the_target() -> None:
    assert implied_acls({acl("*")}, default(NAMES)) == {acl("east.", pattern="PREFIXED")}
    assert implied_acls({acl("*")}, identity({"a": "a"})) == {acl("a")}
    # names that begin with a star
    assert implied_acls({acl("*", pattern="PREFIXED")}, default(NAMES)) == set()


def test_fifty_prefixes_over_ten_thousand_topics_are_fifty_acls() -> None:
    names = {f"orders-{number}": f"east.orders-{number}" for number in range(10_000)}
    source = {
        acl("orders-", pattern="PREFIXED", principal=f"User:{number}") for number in range(50)
    }
    assert len(plan(source, set(), set(), names)) == 50
    assert plan(source, implied_acls(source, default(names)), set(), names) == []


def test_a_prefix_is_written_out_where_others_lie_below_or_the_policy_does_not_keep_it() -> None:
    prefixed = {acl("orders", pattern="PREFIXED")}
    assert implied_acls(prefixed, identity({"orders": "orders"}, "orders-of-the-west")) == {
        acl("orders")
    }
    assert implied_acls(prefixed, {"orders": "a", "orders-eu": "b", "pay": "c"}) == {
        acl("a"),
        acl("b"),
    }


def test_a_topic_that_is_named_otherwise_gets_its_own_acl_beside_the_prefix() -> None:
    names = {"heartbeats": "east.heartbeats", "heat": "heat"}
    assert implied_acls({acl("hea", pattern="PREFIXED")}, identity(names)) == {
        acl("hea", pattern="PREFIXED"),
        acl("east.heartbeats"),
    }


def test_what_is_written_out_ends_at_a_limit_and_takes_nothing_away() -> None:
    names = {f"o{number}": f"x{number}" for number in range(5)}
    first, second = (acl("o", pattern="PREFIXED", principal=f"User:{who}") for who in "ab")
    planned = plan_acls({first, second}, set(), {}, mirrors=Mirrors(names), policy="p", limit=9)
    assert {change.acl for change in planned.changes} == {
        acl(name, principal="User:a") for name in names.values()
    }
    assert planned.withheld == (second,)
    had = {acl(name, principal="User:b"): "p" for name in names.values()}
    planned = plan_acls(
        {first, second}, had.keys(), had, mirrors=Mirrors(names), policy="p", limit=4
    )
    assert (planned.changes, planned.withheld) == ([], (first, second))
    wide = acl("o", pattern="PREFIXED", principal="User:a")
    same = {name: name for name in names}
    for permission, changes in (("ALLOW", ["delete"]), ("DENY", [])):
        asked, made = replace(first, permission=permission), replace(wide, permission=permission)
        planned = plan_acls(
            {asked}, {made}, {made: "p"}, mirrors=identity(same, "other"), policy="p", limit=4
        )
        assert ([change.action for change in planned.changes], planned.withheld) == (
            changes,
            (asked,),
        ), "never wider"


def test_a_prefix_is_taken_back_when_a_topic_of_the_targets_own_comes_below_it() -> None:
    """At once, even where what takes its place cannot be made."""
    source, wide = {acl("*")}, acl("east.", pattern="PREFIXED")
    mirrors = Mirrors(
        NAMES,
        {},
        lambda prefix: f"east.{prefix}",
        lambda prefix: not "east.private".startswith(prefix),
    )
    assert implied_acls(source, mirrors) == {acl(name) for name in NAMES.values()}
    planned = plan_acls(source, {wide}, {wide: "p"}, mirrors=mirrors, policy="p")
    wanted = {change.acl for change in planned.changes if change.action == "create"}
    assert wanted == {acl(name) for name in NAMES.values()} and planned.changes[-1] == AclChange(
        "delete", wide
    )
    assert removals(planned.changes, wanted, mirrors.closed) == [wide]
    assert removals(planned.changes, wanted) == []


def test_nothing_is_allowed_where_a_denial_cannot_be_written_out() -> None:
    names = {f"o{number}": f"x{number}" for number in range(5)}
    source = {
        acl("o", pattern="PREFIXED", permission="DENY"),
        acl("o1"),
        acl("o2", permission="DENY"),
    }
    planned = plan_acls(source, set(), {}, mirrors=Mirrors(names), policy="p", limit=4)
    assert [change.acl for change in planned.changes] == [acl("x2", permission="DENY")]


def test_what_was_written_out_by_an_earlier_version_gives_way_to_the_prefix() -> None:
    source, literals = (
        {acl("orders", pattern="PREFIXED")},
        {acl("east.orders"), acl("east.orders-gone")},
    )
    mirrors = default(NAMES, {"orders-gone": "east.orders-gone"})
    planned = plan_acls(source, literals, dict.fromkeys(literals), mirrors=mirrors, policy="p")
    wide = acl("east.orders", pattern="PREFIXED")
    assert planned.changes == [
        AclChange("create", wide),
        *(AclChange("delete", each) for each in sorted(literals)),
    ]
    assert removals(planned.changes, {wide}) == [], "not before the prefix could be made"
    assert removals(planned.changes, set()) == sorted(literals)


def test_no_right_goes_with_another_policy() -> None:
    """`default` edited to `identity`: who reads the mirrors of before goes on, and it is said which
    they are."""
    before = {
        acl("east.orders"): "default",
        acl("east.", pattern="PREFIXED"): "default",
        acl("x.orders"): None,
    }
    target = {*before, acl("by-hand")}
    planned = plan_acls(
        {acl("orders")}, target, before, mirrors=identity({"orders": "orders"}), policy="identity"
    )
    assert planned.changes == [AclChange("create", acl("orders"))]
    assert planned.left == before
    back = plan_acls(
        {acl("orders")},
        target,
        before,
        mirrors=default({"orders": "east.orders"}),
        policy="default",
    )
    assert [change.acl for change in back.changes] == [acl("east.", pattern="PREFIXED")]
    assert back.left == {acl("x.orders"): None}


def test_only_the_difference_is_made() -> None:
    source = {acl("orders"), acl("pay")}
    assert plan(source, {acl("east.pay")}, set(), NAMES) == [
        AclChange("create", acl("east.orders"))
    ]
    assert plan(source, {acl("east.pay"), acl("east.orders")}, set(), NAMES) == []


def test_only_our_own_are_taken_away() -> None:
    target = {acl("east.orders"), acl("east.pay"), acl("east.pay", principal="User:hand")}
    assert plan(set(), target, {acl("east.orders")}, NAMES) == [
        AclChange("delete", acl("east.orders"))
    ]


def test_what_others_took_away_is_forgotten() -> None:
    assert plan(set(), set(), {acl("east.orders")}, NAMES) == [
        AclChange("forget", acl("east.orders"))
    ]


def test_rights_on_the_mirror_of_a_topic_that_is_gone_follow_the_source_acls_still() -> None:
    ours = {acl("east.gone"), acl("east.gone", principal="User:bob")}
    source = {acl("go", pattern="PREFIXED"), acl("go", "DESCRIBE", pattern="PREFIXED")}
    found = plan(source, ours, ours, NAMES, {"gone": "east.gone"})
    assert found == [
        AclChange("delete", acl("east.gone", principal="User:bob"))
    ]  # and nothing new is made there


def test_an_owned_acl_of_which_nobody_knows_the_topic_stays() -> None:
    assert plan(set(), {acl("old.orders")}, {acl("old.orders")}, NAMES) == []


def test_what_we_own_is_folded_from_history() -> None:
    first, second, third = acl("east.orders"), acl("east.pay"), acl("east.orders-eu", "ALL", "DENY")
    history = [
        AclChange("create", first).row(),
        AclChange("create", second).row("refused by the cluster"),
        AclChange("create", third).row(),
        AclChange("delete", first).row(),
        AclChange("delete", third).row("refused by the cluster"),
        Change("config", "east.pay", None, "retention.ms=1"),
        Change("acl", "cluster east", None, None, outcome="skipped", error="no authorizer"),
    ]
    assert owned_acls(history).keys() == {third}
    assert owned_acls([*history, AclChange("forget", third).row()]) == {}
    assert owned_acls([*history, AclChange("create", first).row()]).keys() == {third, first}


def test_what_was_begun_is_ours_until_the_cluster_refused_it() -> None:
    change = AclChange("create", acl("east.orders"))
    assert owned_acls([change.begun("identity")]) == {acl("east.orders"): "identity"}
    assert owned_acls([change.begun("identity"), change.row("no right")]) == {}
    again = [
        change.begun("identity"),
        change.row("no right"),
        change.begun("default"),
        change.row(None, "default"),
    ]
    assert owned_acls(again) == {acl("east.orders"): "default"}


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
topic_sets = st.sets(st.sampled_from(["a", "ab", "abc", "b"]))
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


def apply(changes: list[AclChange], target: frozenset[Acl]) -> frozenset[Acl]:
    return (target | {change.acl for change in changes if change.action == "create"}) - {
        change.acl for change in changes if change.action == "delete"
    }


ways = st.sampled_from(["default", "own", "identity"])


def mirrors_of(
    way: str, topics: Iterable[str], upstream: Iterable[str] = (), strange: str = "abx"
) -> Mirrors:
    """Mirrors by one of three policies; a topic of the target's own lies below some prefixes."""
    name = {"default": "east.{}", "identity": "{}", "own": "{}-east"}[way].format
    names, earlier = (
        {topic: name(topic) for topic in topics},
        {topic: name(topic) for topic in upstream},
    )
    if way == "identity":
        return Mirrors(
            names,
            earlier,
            lambda prefix: prefix or None,
            lambda prefix: not strange.startswith(prefix),
        )
    if way == "default":
        own = f"east.{strange}"
        return Mirrors(
            names,
            earlier,
            lambda prefix: f"east.{prefix}",
            lambda prefix: not own.startswith(prefix),
        )
    return Mirrors(names, earlier)


@given(acl_sets, topic_sets, ways)
def test_a_mirror_never_grants_more_than_its_source(
    source: frozenset[Acl], topics: set[str], way: str
) -> None:
    mirrors = mirrors_of(way, topics)
    made = apply(plan_acls(source, frozenset(), {}, mirrors=mirrors).changes, frozenset())
    for principal in ("User:ann", "User:bob", "User:eve"):
        for host in ("h", "i"):
            for operation in OPERATIONS:
                own = "east.abx" if way == "default" else "abx"
                assert not allows(made, own, principal, host, operation) or way == "own", (
                    "of the target's own"
                )
                for topic, name in mirrors.names.items():
                    there = allows(source, topic, principal, host, operation)
                    here = allows(made, name, principal, host, operation)
                    assert here <= there
                    if operation in ("READ", "DESCRIBE"):
                        reads = allows(source, topic, principal, host, "READ")
                        assert here == there or (operation == "DESCRIBE" and not reads)


rounds_of = st.lists(
    st.tuples(acl_sets, topic_sets, st.sampled_from(["abx", "none"])), min_size=1, max_size=4
)


@given(rounds_of, acl_sets, ways)
def test_by_difference_over_many_turns(
    rounds: list[tuple[frozenset[Acl], set[str], str]], hand: frozenset[Acl], way: str
) -> None:
    """Nothing is left to do after a turn, what people made stays, and what is ours is what the
    history says."""
    target, history = hand, []
    for source, selected, strange in rounds:
        mirrors = mirrors_of(way, selected, ("a", "ab", "abc", "b"), strange)
        done = plan_acls(source, target, owned_acls(history), mirrors=mirrors, policy=way).changes
        target = apply(done, target)
        history += [change.row(None, way) for change in done]
        assert (
            plan_acls(source, target, owned_acls(history), mirrors=mirrors, policy=way).changes
            == []
        )
        assert hand <= target
        assert target - hand == owned_acls(history).keys()
        assert imply(source, mirrors).acls <= target


@given(acl_sets, topic_sets, ways, ways)
def test_nobody_loses_a_right_by_another_policy(
    source: frozenset[Acl], topics: set[str], before: str, after: str
) -> None:
    made = apply(
        plan_acls(
            source, frozenset(), {}, mirrors=mirrors_of(before, topics), policy=before
        ).changes,
        frozenset(),
    )
    planned = plan_acls(
        source, made, dict.fromkeys(made, before), mirrors=mirrors_of(after, topics), policy=after
    )
    assert not [change for change in planned.changes if change.action != "create"]
